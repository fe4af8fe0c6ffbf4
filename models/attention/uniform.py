"""Uniform attention: every visible token weighs the same. The control of every comparison."""

from __future__ import annotations

from torch import Tensor, nn

from entrain.models.attention.config import AttentionConfig
from entrain.models.attention.mechanism import AttentionMechanism
from entrain.models.attention.visibility import Visible


class UniformAttention(AttentionMechanism):
    """y_i = the mean of v_j over the tokens that i sees. Heads would all average alike."""

    def __init__(self, config: AttentionConfig, d_model: int, heads: int, max_length: int) -> None:
        super().__init__(config, d_model, heads, max_length)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def attend(self, x: Tensor, visible: Visible) -> Tensor:
        """See `AttentionMechanism`."""
        values = self.value(x).unsqueeze(1)
        count = visible.total(values.new_ones(1, 1, x.shape[1], 1)).clamp(min=1)
        mean = (visible.total(values) / count).squeeze(1)
        # Without a causal mask all tokens read out the same mean, which is mapped only once.
        output: Tensor = self.output(mean).expand_as(x)
        return output

    @classmethod
    def multiply_adds(cls, config: AttentionConfig, d_model: int, heads: int, tokens: int) -> int:  # noqa: ARG003
        """The values of all tokens, and the output of the one mean."""
        return tokens * d_model**2 + d_model**2
