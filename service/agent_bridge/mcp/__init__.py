"""The tools that agents call, and the pipe by which their programs reach them."""
