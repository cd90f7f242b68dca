"""What becomes of models: trained, asked for, made again, deployed, promoted."""
