"""A generator whose answers are recorded to a cassette, or played back from one.

Judges and simulators have their own way through a cassette, because what they are asked is more than the call.
"""

from hashlib import sha256
from typing import Any

import msgspec

from atp.models.cassettes.cassette import Cassette
from atp.roles.player import Call, RoleClient, Said


class RecordedClient(RoleClient):
    """Another client, behind a cassette."""

    def __init__(self, client: RoleClient, cassette: Cassette) -> None:
        self.name = client.name
        self.identity = client.identity
        self.model = client.model
        self.own = client.own
        self.unfit_to_judge = client.unfit_to_judge
        self._client = client
        self._cassette = cassette

    async def ask(self, call: Call) -> Said:
        """Play. Raises `CassetteMiss` if nothing was recorded for it, and what the client raises."""

        async def asked() -> Any:
            said = await self._client.ask(call)
            return {"data": said.data, "text": said.text, "usage": msgspec.to_builtins(said.usage)}

        parts: dict[str, Any] = {
            "player": self.identity,
            "role": call.role,
            "asked": call.payload,
            "options": call.options,
            "run": call.run,
        }
        if not self.own:
            parts["words"] = sha256(call.instructions.encode()).hexdigest()[:12]
        return msgspec.convert(await self._cassette.through("generator", parts, asked), Said)
