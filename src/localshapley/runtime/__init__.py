"""What the library runs on: threads, memory, devices, clusters, compiling, progress, checks of arguments."""
