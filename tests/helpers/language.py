"""A tiny language model and its tokenizer, made here: no net, no file."""

WORDS = [
    "good",
    "bad",
    "film",
    "was",
    "the",
    "day",
    "a",
    "happy",
    "sad",
    "it",
    "and",
    "very",
    "not",
]
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DISABLE_TELEMETRY": "1"}


def tiny_tokenizer(padding=True):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: n for n, word in enumerate(["<pad>", "<end>", "<unknown>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.WordPiece(prefix="##")  # words with spaces between them
    special = {"eos_token": "<end>", "unk_token": "<unknown>"}
    if padding:
        special["pad_token"] = "<pad>"
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def tiny_model(seed=0, layers=1):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=3 + len(WORDS), hidden_size=16, intermediate_size=16,
            num_hidden_layers=layers, num_attention_heads=2, num_key_value_heads=2,
            max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=None,
        )  # fmt: skip
        return LlamaForCausalLM(config)


def frozen(model):
    return model.requires_grad_(False)
