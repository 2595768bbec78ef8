// Specifications of the provider commands.
import type { CommandSpec } from "./command-spec.ts";
import { nameOf, outputSchema, NO_INPUT, text, withCli } from "./schema-fields.ts";

const PROVIDER_FIELD = text("Provider name in gateway.yaml");

export const PROVIDER_COMMAND_SPECS = {
  "providers.list": {
    summary: "Show the health and latency of providers",
    input: NO_INPUT,
    output: outputSchema("providers", "unmountedProviders", "countedSince"),
    role: "viewer",
    writes: false,
    cli: {
      words: "providers list",
      description:
        "Lists providers with their state in the last hour: calls, failures, time to first token, cooldowns with their end, and the last failure.",
      examples: ["tollgate providers", "tollgate providers list --json"],
    },
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
        credential: nameOf("Credential to test"),
        model: withCli(
          text("Model to test, as the provider names it. Default: its cheapest chat model"),
          { value: "model" },
        ),
      },
    },
    output: outputSchema("tests"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "provider" },
    cli: {
      words: "providers test",
      description:
        'Sends one small request with each credential of a provider and reports the result. The requests are billed, and the ledger records them under the key "operator".',
      args: ["provider"],
      examples: [
        "tollgate providers test demo",
        "tollgate providers test openai --model gpt-5-mini",
      ],
      exits: "Exits with 1 if one of the requests fails.",
    },
    worksOffline: false,
  },
  "providers.reset": {
    summary: "Clear the cooldowns of a provider",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["provider"],
      properties: { provider: PROVIDER_FIELD, credential: nameOf("Credential to reset") },
    },
    output: outputSchema("reset"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "provider" },
    cli: {
      words: "providers reset",
      description:
        "Clears the cooldown of a provider, or of one of its credentials, whatever the reason: retry-after, a rejected credential, or repeated failures. If the provider fails again, the cooldown starts again.",
      args: ["provider"],
      examples: ["tollgate providers reset demo"],
    },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;

// Specifications of the config commands. No command writes a file.

export const CONFIG_COMMAND_SPECS = {
  "config.show": {
    summary: "Show the running config and the source of each value",
    input: NO_INPUT,
    output: outputSchema("file", "generation", "loadedAt", "shownValues", "text"),
    role: "viewer",
    writes: false,
    cli: {
      words: "config show",
      description:
        "Shows each value of the running gateway's config and its source: a line of a file, a variable, the command line, or a default. Secrets are hidden. To show a file while no gateway is running, use tollgate print.",
      examples: ["tollgate config show", "tollgate config show --no-defaults"],
    },
    worksOffline: false,
  },
  "config.check": {
    summary: "Check a changed config and list its effects",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["text"],
      properties: {
        text: {
          type: "string",
          minLength: 1,
          maxLength: 500_000,
          description: "A gateway.yaml, whole",
        },
      },
    },
    output: outputSchema("ok", "problems", "changes", "restartKeys", "assumedVariables"),
    role: "operator",
    writes: false,
    cli: {
      words: "config check",
      description:
        "Validates a file as the new config of the running gateway and shows the " +
        "changes that it would make. Nothing is written, plugins that are not " +
        "mounted are not loaded, and secrets are not read.",
      examples: ["tollgate config check next.yaml"],
      exits: "Exits with 1 if there are errors.",
    },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
