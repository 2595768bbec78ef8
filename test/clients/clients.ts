import type { Check, ScriptProtocol } from "tollgate/testing";
import { AGENTS } from "./agents/plays.ts";
import { claudeCode } from "./claude-code.ts";
import type { Client } from "./client.ts";
import { codex } from "./codex.ts";
import { four } from "./four.ts";
import { GEMINI_CLI } from "./google/cli.ts";
import { GOOGLE, SILENCE } from "./google/plays.ts";
import { PYTHON_GRID } from "./grid/python.ts";
import { installed } from "./install.ts";
import { PYTHON } from "./python/plays.ts";
import { stage } from "./stage.ts";
import { toolRunner } from "./tool-runner.ts";
import { turns } from "./turns.ts";
import { VENDORS } from "./vendors/plays.ts";

export const CLIENTS: readonly Client[] = [claudeCode, codex];

const SPOKEN: readonly ScriptProtocol[] = ["messages", "chat-completions", "responses"];

/** Checks and their environment. */
export interface Cast extends AsyncDisposable {
  readonly checks: readonly Check[];
}

/** A unit of work: a client with all of its checks. */
export interface Play {
  /** Names on the command line: the first is unique, and others may select several. */
  readonly names: readonly string[];
  readonly title: string;
  cast(): Promise<Cast>;
}

/** Installs a client, and prepares the environment for its checks. */
export async function checksOf(client: Client): Promise<Cast> {
  const script = await installed(client.package);
  const at = await stage(client.models);
  return {
    checks: SPOKEN.flatMap((spoken) => turns({ client, script, at, spoken })),
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  };
}

const RUNNER: Play = {
  names: ["tool-runner"],
  title: "the tool runner of @anthropic-ai/sdk",
  async cast() {
    const at = await four();
    return { checks: toolRunner(at), [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() };
  },
};

export const PLAYS: readonly Play[] = [
  ...CLIENTS.map((client): Play => ({
    names: [client.name],
    title: `${client.package.name} ${client.package.version}`,
    cast: () => checksOf(client),
  })),
  RUNNER,
  ...AGENTS,
  ...GOOGLE,
  SILENCE,
  GEMINI_CLI,
  ...VENDORS,
  ...PYTHON,
  PYTHON_GRID,
];
