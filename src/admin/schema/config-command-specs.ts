// Specifications of the config commands. None of them writes a file.
import type { CommandSpec } from "./command-spec.ts";
import { outputSchema, NO_INPUT } from "./schema-fields.ts";

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
        "Validates a file as the running gateway's new config and shows what it would change. Nothing is written, plugins that are not mounted are not loaded, and secrets are not read.",
      examples: ["tollgate config check next.yaml"],
      exits: "Exits with 1 if there are errors.",
    },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
