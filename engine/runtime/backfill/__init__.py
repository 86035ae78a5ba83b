"""Computing rows of a stateless streaming table again from the input that its stream has read."""
