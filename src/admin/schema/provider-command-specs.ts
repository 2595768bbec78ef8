// Specifications of the provider commands.
import type { CommandSpec } from "./command-spec.ts";
import { outputSchema, NO_INPUT, text } from "./schema-fields.ts";

const PROVIDER_FIELD = text("The provider, as gateway.yaml names it");

export const PROVIDER_COMMAND_SPECS = {
  "providers.list": {
    summary: "how providers are: what rests, what failed last, how fast they answer",
    input: NO_INPUT,
    output: outputSchema("providers", "unmountedProviders", "countedSince"),
    role: "viewer",
    writes: false,
    cli: "providers list",
    worksOffline: false,
  },
  "providers.test": {
    summary: "make one small call with each credential of a provider",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["provider"],
      properties: {
        provider: PROVIDER_FIELD,
        credential: text("Only with this credential"),
        model: text("This model, as the provider calls it; its cheapest chat model by default"),
      },
    },
    output: outputSchema("tests"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "provider" },
    cli: "providers test",
    worksOffline: false,
  },
  "providers.reset": {
    summary: "clear the cooldowns of a provider",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["provider"],
      properties: { provider: PROVIDER_FIELD, credential: text("Only this credential") },
    },
    output: outputSchema("reset"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "provider" },
    cli: "providers reset",
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
