"""Where a job runs: filters, ranking and the reasons for both; plain Python, no Django."""
