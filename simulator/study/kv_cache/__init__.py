"""What a cache takes, on which GPUs, and what is lost where it keeps less: few tokens, few bits."""
