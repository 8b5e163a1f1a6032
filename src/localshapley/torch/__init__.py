"""Models in PyTorch: heads, networks and graph networks, thousands of copies trained together."""
