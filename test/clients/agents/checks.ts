// The checks of every coding client and agent framework: a response, a streaming response, a tool
// call that changes a file, a provider error, and a truncated stream. The ledger must have the
// usage of each answered upstream call.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  call,
  say,
  toolResults,
  type Check,
  type ScriptProtocol,
  type UpstreamRequest,
} from "tollgate/testing";
import type { Usage } from "tollgate/plugin";
import type { Call } from "../client.ts";
import { declaredIn, refusing } from "../scripts.ts";
import type { Played, Script, Stage } from "../stage.ts";
import type { Agent, CheckName } from "./agent.ts";

/** A model of each provider. LiteLLM interprets names that start with "responses/". */
const MODELS: { readonly [spoken in ScriptProtocol]: string } = {
  "chat-completions": "up-chat/model",
  messages: "up-messages/claude-sonnet-4-6",
  responses: "up-responses/model",
};
const HELLO = "Grüße aus Oslo 🌍.";
/** A text of many stream events, with characters of two, three, and four bytes. */
const LONG = Array.from({ length: 60 }, (_, n) => `Zeile ${n}: «Straße» → 🚲.`).join(" ");
const FILE_TEXT = 'first "line" 🌉\n\tsecond\\line\n';
const REFUSAL = "model is overqualified for this request (check 4711)";
const BREAK = "generation stopped (check 4712)";
const DONE = "The file is written.";

/** Every call has a unique usage, so that calls cannot be confused. */
const usageOf = (n: number): Usage => ({
  input: 1000 + n,
  cache_read: 50,
  output: 20 + n,
  reasoning: 8,
});

export function agentChecks(agent: Agent, installed: string, at: Stage): Check[] {
  const run = async (of: Omit<Scene, "agent" | "installed" | "at">) =>
    scene({ agent, installed, at, ...of });
  const check = (what: CheckName, then: () => Promise<void>, more = ""): Check => ({
    name: `${agent.name}: ${what}${more}`,
    run: () => (agent.faults?.[what] === undefined ? then() : faulty(what, then)),
  });
  const answers = (what: CheckName, text: string, stream: boolean) =>
    check(what, async () => {
      const played = await run({ script: () => say(text), prompt: "Say hello.", stream });
      succeeded(played, text);
      const ways = played.asked.map((asked) => asked.json().stream === true);
      assert.ok(ways.includes(stream), `no request has stream: ${stream}`);
    });
  const tools = (spoken: ScriptProtocol) =>
    check(
      "tool call",
      async () => {
        const cwd = await at.folder();
        const path = join(cwd, "made.txt");
        const wanted = agent.writes(path, FILE_TEXT);
        const prompt = "Write the file made.txt.";
        const played = await run({ script: toolScript(wanted), prompt, stream: true, spoken, cwd });
        assert.ok(
          played.asked.some((asked) => declares(asked, wanted.tool)),
          `no request declares ${wanted.tool}: ${JSON.stringify(played.asked.flatMap(declaredIn))}\n${endOf(played)}`,
        );
        const text = await readFile(path, "utf8").catch((error: unknown) => String(error));
        assert.equal(text.trimEnd(), FILE_TEXT.trimEnd(), endOf(played));
        succeeded(played, DONE);
      },
      spoken === agent.protocol ? "" : ` on a ${spoken} provider`,
    );
  const others = (["chat-completions", "messages", "responses"] as const).filter(
    (spoken) => spoken !== agent.protocol,
  );
  return [
    ...(agent.plain ? [answers("plain answer", HELLO, false)] : []),
    answers("streamed answer", LONG, true),
    tools(agent.protocol),
    ...others.map(tools),
    check("provider error", async () => {
      const played = await run({
        script: refusing(400, REFUSAL),
        prompt: "Say hello.",
        stream: true,
      });
      assert.ok(played.asked.length > 0, `nothing reached the provider\n${endOf(played)}`);
      assert.ok(
        (played.out + played.err).includes(REFUSAL),
        `the client does not show the error\n${endOf(played)}`,
      );
      assert.deepEqual(usagesIn(played), [], "a refused call is billed");
    }),
    check("broken stream", async () => {
      const played = await run({ script: breakingOnce(), prompt: "Say hello.", stream: true });
      const { code, out, err, asked, settled } = played;
      const retried = out.includes(HELLO);
      const told = code !== 0 || (out + err).includes(BREAK);
      assert.ok(retried || told, `half an answer passes for a whole one\n${endOf(played)}`);
      assert.equal(settled.length, asked.length, "one entry per call");
    }),
  ];
}

interface Scene {
  readonly agent: Agent;
  readonly installed: string;
  readonly at: Stage;
  readonly script: Script;
  readonly prompt: string;
  readonly stream: boolean;
  readonly spoken?: ScriptProtocol;
  readonly cwd?: string;
}

async function scene(of: Scene): Promise<Played> {
  const { agent, installed, at, script, prompt, stream, spoken = agent.protocol } = of;
  const cwd = of.cwd ?? (await at.folder());
  const { url, key } = at;
  const model = MODELS[spoken];
  const command = await agent.command({ installed, url, key, model, cwd, prompt, stream });
  return at.play(counting(script), command);
}

/** Returns each response with the usage of its number. */
const counting =
  (script: Script): Script =>
  (asked) => {
    const answer = script(asked);
    return "output" in answer ? answer.usage(usageOf(asked.number)) : answer;
  };

/** Calls the tool once. Requests without that tool get a text: some clients ask for a title first. */
const toolScript =
  ({ tool, args }: Call): Script =>
  (asked) => {
    if (toolResults(asked).length > 0) return say(DONE);
    return declares(asked, tool) ? call(tool, args) : say("A title");
  };

/** Ends the first stream with the protocol's error event. Requests without tools are side requests, such as one for a title. */
function breakingOnce(): Script {
  let broken = false;
  return (asked) => {
    if (broken || declaredIn(asked).length === 0) return say(HELLO);
    broken = true;
    return say("Half of it ").fail(BREAK);
  };
}

const declares = (asked: UpstreamRequest, tool: string) =>
  declaredIn(asked).some(({ name }) => name === tool);

/** The client shows the text and exits with 0, and the ledger has the usage of each upstream call. */
function succeeded(played: Played, text: string): void {
  const { code, out, asked, served, complaints } = played;
  assert.ok(out.includes(text), `the answer is missing\n${endOf(played)}`);
  assert.equal(code, 0, endOf(played));
  assert.deepEqual(complaints, [], "the gateway logged a warning or an error");
  for (const { status, path } of served) assert.equal(status, 200, path);
  assert.deepEqual(
    usagesIn(played),
    asked.map(({ number }) => usageOf(number)),
    "the ledger differs from the upstream",
  );
  for (const { state } of played.settled) assert.match(state, /^(exact|unpriced)$/);
}

/** How the client ended, for the message of a check that fails. */
const endOf = ({ code, out, err }: Played) =>
  `exit code ${code}\n${out.slice(-2000)}\n${err.slice(-2000)}`;

/** The settled usages in the order of their calls, without units of 0. */
function usagesIn({ settled }: Played): Usage[] {
  return settled
    .map(({ usage }) =>
      Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== 0)),
    )
    .filter((usage) => Object.keys(usage).length > 0)
    .toSorted((one, other) => (one["input"] ?? 0) - (other["input"] ?? 0));
}

/** A failure that no longer occurs must be removed from the list. */
async function faulty(what: string, then: () => Promise<void>): Promise<void> {
  const failed = await then().then(
    () => false,
    () => true,
  );
  assert.ok(failed, `The known fault of "${what}" is gone. Remove it from the list of faults.`);
}
