// The commands about the config, as the table has them. None of them writes a file.
import type { CommandFacts } from "./command-facts.ts";
import { answer, NONE } from "./fields.ts";

export const CONFIG_COMMANDS = {
  "config.show": {
    summary: "the config that runs, each value with where it comes from",
    input: NONE,
    output: answer("file", "generation", "loadedAt", "values", "text"),
    role: "viewer",
    writes: false,
    cli: "config show",
    onFiles: false,
  },
  "config.check": {
    summary: "what would be wrong with another text, and what it would change",
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
    output: answer("ok", "problems", "changes", "restart", "assumed"),
    role: "operator",
    writes: false,
    cli: "config check",
    onFiles: false,
  },
} as const satisfies Readonly<Record<string, CommandFacts>>;
