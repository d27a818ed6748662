"""placeholder image_grads"""
