// Specifications of the provider commands.
import type { CommandSpec } from "./command-spec.ts";
import { outputSchema, NO_INPUT, text } from "./schema-fields.ts";

const PROVIDER_FIELD = text("Provider name in gateway.yaml");

export const PROVIDER_COMMAND_SPECS = {
  "providers.list": {
    summary: "Show the health and latency of providers",
    input: NO_INPUT,
    output: outputSchema("providers", "unmountedProviders", "countedSince"),
    role: "viewer",
    writes: false,
    cli: "providers list",
    worksOffline: false,
  },
  "providers.test": {
    summary: "Test each credential of a provider",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["provider"],
      properties: {
        provider: PROVIDER_FIELD,
        credential: text("Credential to test"),
        model: text("Model to test, as the provider names it. Default: its cheapest chat model"),
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
    summary: "Clear the cooldowns of a provider",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["provider"],
      properties: { provider: PROVIDER_FIELD, credential: text("Credential to reset") },
    },
    output: outputSchema("reset"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "provider" },
    cli: "providers reset",
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
