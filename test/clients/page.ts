// docs/guides/clients.md: which client programs were run against the gateway, and with what result. `npm run clients -- --page` writes it.
// A client that was not run keeps its row.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Agent } from "./agents/agent.ts";
import { ALL } from "./agents/plays.ts";

export interface ClientResult {
  /** Name and version. */
  readonly title: string;
  readonly passed: number;
  readonly failed: number;
  /** The client could not be installed. */
  readonly skipped?: boolean;
}

const PAGE = join(import.meta.dirname, "../../docs/guides/clients.md");

type About = readonly [protocol: string, checked: string];

const checkedWith = ({ plain }: Agent) =>
  `${plain ? "plain and streamed answers" : "streamed answers"}, tool calls that change a file, provider errors, broken streams`;

/** What each client speaks to the gateway, and what is checked with it. */
const ABOUT: { readonly [client: string]: About } = {
  "@anthropic-ai/claude-code": [
    "messages",
    "tool calls, pictures, resumed conversations, retries, errors",
  ],
  "@openai/codex": ["responses", "tool calls, patches, pictures, resumed conversations, retries"],
  "@google/gemini-cli": ["gemini", "text, tools, pictures, silence, budgets"],
  "tool runner of @anthropic-ai/sdk": ["messages", "tool loops, streamed and not"],
  "@google/genai": ["gemini", "text, chats, tools, schemas, thoughts, pictures, embeddings"],
  "@google/generative-ai": ["gemini", "text, tools, schemas, pictures, embeddings"],
  "@ai-sdk/google": ["gemini", "text, tools, schemas, thoughts, pictures, embeddings"],
  "@langchain/google-genai": ["gemini", "text, tools, schemas, embeddings"],
  "google-genai": ["gemini", "text, tools, schemas, thoughts, pictures, embeddings"],
  openai: [
    "chat-completions, responses, images, audio, embeddings",
    "text, tools, schemas, pictures, image edits, speech, transcripts, Azure",
  ],
  anthropic: ["messages", "text, tools, tool runner, pictures, token counts"],
  "langchain-openai": ["chat-completions, responses, embeddings", "text, tools, schemas, pictures"],
  "llama-index-llms-openai-like": ["chat-completions, responses", "text, tools, pictures"],
  "pydantic-ai-slim": ["chat-completions, responses, messages", "text, tools, schemas, pictures"],
  "cohere-ai": ["rerank", "rankings"],
  voyageai: ["embeddings, rerank", "embeddings, rankings"],
  "@langchain/cohere": ["rerank", "rankings"],
  ...Object.fromEntries(
    ALL.map((agent): [string, About] => [agent.package, [agent.protocol, checkedWith(agent)]]),
  ),
};

const HEAD = `# Tested clients

Client programs that a nightly run drives against a gateway with providers of every protocol behind it. Each check compares the
client's result with the scripted answer, and the client's token counts with the ledger.

Run it with \`npm run clients -- --page\`. It installs exact versions of the clients from npm and PyPI into a temporary folder and
rewrites this page. A client that cannot be installed is skipped, and its row says so.

| Client | Version | Protocol | Checked | Checks passed | Date |
|---|---|---|---|---|---|
`;

const AGENTS = `
## Coding clients and agent frameworks

These clients are selected by their number of users, from public download figures of November 2026. Claude Code (41,514,339 npm
downloads per month), Codex (8,721,717), and Gemini CLI (2,694,232) have longer lists of checks, described in the table above.

Run them with \`npm run clients -- agents\`. Each check runs one prompt, without a terminal and with telemetry off. The tool call is
checked on chat-completions, messages, and responses providers. The ledger must contain the usage of each call that succeeds, exactly
as the provider reported it. A request that the provider rejects must not be billed.

| Client | Users |
|---|---|
${ALL.map((agent) => `| ${agent.package} | ${agent.users} |`)
  .toSorted()
  .join("\n")}
`;

const FAULTS = ALL.flatMap((agent) =>
  Object.entries(agent.faults ?? {}).map(
    ([check, why]) => `- **${agent.package} ${agent.version}, ${check}**: ${why}`,
  ),
);

const FAULTY = `
## Known faults of clients

These checks fail because of the client. The nightly run reports when a fault is gone.

${FAULTS.join("\n")}
`;

/** Rewrites the rows of these clients. `date`: as it is shown. */
export function writePage(results: readonly ClientResult[], date: string): void {
  const rows = new Map<string, string>();
  const before = existsSync(PAGE) ? readFileSync(PAGE, "utf8").split("\n") : [];
  const last = before.findIndex((line) => line.startsWith("## "));
  const table = before.slice(0, last < 0 ? undefined : last);
  for (const line of table.filter((one) => one.startsWith("| ")).slice(1))
    rows.set(keyOf(line), line);
  for (const { title, passed, failed, skipped } of results) {
    const [name, version] = named(title);
    const about = ABOUT[name];
    if (!about) continue;
    const result = skipped ? "skipped: not installed" : `${passed} of ${passed + failed}`;
    const line = `| ${name} | ${version} | ${about.join(" | ")} | ${result} | ${date} |`;
    rows.set(keyOf(line), line);
  }
  const sorted = [...rows.keys()].toSorted().map((key) => rows.get(key)!);
  writeFileSync(PAGE, `${HEAD}${sorted.join("\n")}\n${AGENTS}${FAULTS.length > 0 ? FAULTY : ""}`);
}

/** A client, and the line of versions that it is in: two lines of one SDK are two rows. */
const keyOf = (line: string): string => {
  const [, name = "", version = ""] = line.split("|").map((cell) => cell.trim());
  return `${name} ${version.split(".")[0]}`;
};

function named(title: string): readonly [name: string, version: string] {
  const words = title
    .replace(/^the /, "")
    .replace(/^CohereRerank of /, "")
    .split(" ");
  const version = /^\d/.test(words.at(-1)!) ? words.pop()! : "the checkout's";
  return [words.join(" "), version];
}
