"""What a lease runs on this machine: started, watched, taken up again after a restart, stopped."""
