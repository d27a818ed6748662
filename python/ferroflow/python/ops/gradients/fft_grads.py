"""placeholder fft_grads"""
