"""What several commands are asked: logs in files, and curves of bias."""
