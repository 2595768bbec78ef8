// The commands about providers, as the table has them.
import type { CommandFacts } from "./command-facts.ts";
import { answer, NONE, text } from "./fields.ts";

const PROVIDER = text("The provider, as gateway.yaml names it");

export const PROVIDER_COMMANDS = {
  "providers.list": {
    summary: "how providers are: what rests, what failed last, how fast they answer",
    input: NONE,
    output: answer("providers", "leftOut", "since"),
    role: "viewer",
    writes: false,
    cli: "providers list",
    onFiles: false,
  },
  "providers.test": {
    summary: "make one small call with each credential of a provider",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["provider"],
      properties: {
        provider: PROVIDER,
        credential: text("Only with this credential"),
        model: text("This model, as the provider calls it; its cheapest chat model by default"),
      },
    },
    output: answer("tests"),
    role: "operator",
    writes: true,
    changes: { target: "provider" },
    cli: "providers test",
    onFiles: false,
  },
  "providers.wake": {
    summary: "ask a provider again at once, whatever was known against it",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["provider"],
      properties: { provider: PROVIDER, credential: text("Only this credential") },
    },
    output: answer("woken"),
    role: "operator",
    writes: true,
    changes: { target: "provider" },
    cli: "providers wake",
    onFiles: false,
  },
} as const satisfies Readonly<Record<string, CommandFacts>>;
