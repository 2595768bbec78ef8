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
    cli: "config show",
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
    cli: "config check",
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
