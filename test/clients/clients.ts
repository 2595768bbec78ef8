import type { Check, Spoken } from "tollgate/testing";
import { claudeCode } from "./claude-code.ts";
import type { Client } from "./client.ts";
import { codex } from "./codex.ts";
import { installed } from "./install.ts";
import { stage } from "./stage.ts";
import { turns } from "./turns.ts";

export const CLIENTS: readonly Client[] = [claudeCode, codex];

const SPOKEN: readonly Spoken[] = ["messages", "chat-completions", "responses"];

/** Installs a client, and sets a stage for all that is asked of it. */
export async function checksOf(
  client: Client,
): Promise<AsyncDisposable & { readonly checks: readonly Check[] }> {
  const script = await installed(client.package);
  const at = await stage(client.models);
  return {
    checks: SPOKEN.flatMap((spoken) => turns({ client, script, at, spoken })),
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  };
}
