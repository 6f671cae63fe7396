"""What turns a kind of accelerator into facts, units, readings and answered challenges."""
