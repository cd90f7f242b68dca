"""What commands, the monitor and `serve` are asked for: answers, apart from print."""
