"""What carries calls between the network and the pipeline, one of several. Nothing else in the
server knows which one it is."""
