"""Which questions will a fine-tuned language model memorise?"""
