"""The long-running process: lifecycle, scheduler, status socket, installation."""
