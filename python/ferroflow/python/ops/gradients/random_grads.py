"""placeholder random_grads"""
