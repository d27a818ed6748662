"""placeholder linalg_grads"""
