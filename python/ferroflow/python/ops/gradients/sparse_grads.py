"""placeholder sparse_grads"""
