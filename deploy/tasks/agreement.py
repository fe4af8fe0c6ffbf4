"""Subject-verb agreement: sentences, and whether the verb agrees with its subject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from entrain.deploy.errors import CheckpointError
from entrain.deploy.tasks.contract import Recipe, Task, Training

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from entrain.deploy.tasks.contract import Classes, EpochBatches, OnEpoch
    from entrain.models.checkpoint import Checkpoint
    from entrain.models.data.agreement import AgreementData, Sentences
    from entrain.models.training import TrainingConfig

EPOCHS = 20  # the paper's


@dataclass(frozen=True)
class AgreementRecipe(Recipe):
    """How an agreement network is trained and quantized."""

    task: ClassVar[str] = "agreement"
    built_in: ClassVar[str] = "templates"

    @property
    def usual_epochs(self) -> int:
        """See `Recipe`."""
        return EPOCHS


class AgreementTask(Task[AgreementRecipe, "AgreementData", "Sentences"]):
    """See `Task`; what is read are words by their numbers, int64 [N, 7]."""

    recipe_type: ClassVar[type[Recipe]] = AgreementRecipe
    profile: ClassVar[str] = "agreement"
    sample: ClassVar[str] = "sentence"
    group: ClassVar[str | None] = None
    built_in_note: ClassVar[str] = (
        "No --data-dir: using the sentences that the paper's templates give, by its seeds."
    )

    def load(self, recipe: AgreementRecipe) -> AgreementData:
        """The sentences."""
        from entrain.models.data.agreement import generate_agreement, load_agreement

        if recipe.data == recipe.built_in:
            return generate_agreement()
        return load_agreement(Path(recipe.data))

    def train(self, recipe: AgreementRecipe, data: AgreementData, on_epoch: OnEpoch) -> Training:
        """The paper's training of a network that folds into integers: batch norm and ReLU."""
        from entrain.models.agreement_task import RECIPE, train_agreement
        from entrain.models.attention import AttentionConfig
        from entrain.models.checkpoint import Checkpoint
        from entrain.models.networks.agreement import AgreementConfig
        from entrain.models.preparations import Vocabulary

        attention = AttentionConfig.parse(recipe.attention)
        length = data.train.tokens.shape[1]
        network = AgreementConfig(attention, vocabulary=len(data.vocabulary), length=length)
        training = replace(RECIPE, epochs=recipe.epochs, seed=recipe.seed)
        trained = train_agreement(data, network, training, on_epoch)
        checkpoint = Checkpoint.of(self.name, trained, Vocabulary(trained.vocabulary))
        return Training(checkpoint, trained.interrupted)

    def inputs(self, part: Sentences, checkpoint: Checkpoint) -> Tensor:
        """See `Task`."""
        from entrain.models.data.agreement import VOCABULARY
        from entrain.models.preparations import Vocabulary

        if checkpoint.preparation != Vocabulary(VOCABULARY):
            raise CheckpointError(
                "the network numbers its words otherwise than these sentences do",
                remedy="train it anew with this version's sentences",
            )
        return part.tokens

    def truth(self, part: Sentences) -> Classes:
        """See `Task`."""
        return part.targets.numpy()

    def answers(self, network: nn.Module, inputs: Tensor) -> Classes:
        """See `Task`."""
        from entrain.models.agreement_task import evaluate

        return evaluate(network, inputs).numpy()

    def quantized(self, checkpoint: Checkpoint) -> nn.Module:
        """See `Task`."""
        from entrain.deploy.quantization.agreement import new_quantized_agreement
        from entrain.models.networks.agreement import AgreementNetwork

        network = checkpoint.build_network()
        assert isinstance(network, AgreementNetwork)  # by networks.TASKS
        return new_quantized_agreement(network)

    def batches(
        self, data: AgreementData, _checkpoint: Checkpoint, training: TrainingConfig
    ) -> EpochBatches:
        """The training sentences in a new order."""
        from entrain.models.agreement_task import shuffled_sentences

        return shuffled_sentences(data.train, training)

    def groups(self, _part: Sentences) -> None:
        """Every sentence stands for itself."""

    def subsets(self, part: Sentences) -> Mapping[str, NDArray[np.bool_]]:
        """The hard sentences: whoever looks at the nearest noun gets them wrong."""
        return {"hard": part.hard.numpy()}
