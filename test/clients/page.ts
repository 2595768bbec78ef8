// Writes the tables of docs/guides/clients.md: the client programs that were run against the gateway, and their results. A client that was not run
// keeps its row.
import { readFileSync, writeFileSync } from "node:fs";
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
  `${plain ? "non-streaming and streaming responses" : "streaming responses"}, tool calls that change a file, provider errors, truncated streams`;

/** Protocol of each client, and what is checked with it. */
const ABOUT: { readonly [client: string]: About } = {
  "@anthropic-ai/claude-code": [
    "messages",
    "tool calls, images, resumed conversations, retries, errors",
  ],
  "@openai/codex": ["responses", "tool calls, patches, images, resumed conversations, retries"],
  "@google/gemini-cli": ["gemini", "text, tools, images, silent streams, budgets"],
  "tool runner of @anthropic-ai/sdk": ["messages", "tool loops, streaming and non-streaming"],
  "@google/genai": [
    "gemini",
    "text, chats, tools, structured output, reasoning, images, embeddings",
  ],
  "@google/generative-ai": ["gemini", "text, tools, structured output, images, embeddings"],
  "@ai-sdk/google": ["gemini", "text, tools, structured output, reasoning, images, embeddings"],
  "@langchain/google-genai": ["gemini", "text, tools, structured output, embeddings"],
  "google-genai": ["gemini", "text, tools, structured output, reasoning, images, embeddings"],
  openai: [
    "chat-completions, responses, images, audio, embeddings",
    "text, tools, structured output, images, image edits, speech, transcription, Azure",
  ],
  anthropic: ["messages", "text, tools, tool runner, images, token counts"],
  "langchain-openai": [
    "chat-completions, responses, embeddings",
    "text, tools, structured output, images",
  ],
  "llama-index-llms-openai-like": ["chat-completions, responses", "text, tools, images"],
  "pydantic-ai-slim": [
    "chat-completions, responses, messages",
    "text, tools, structured output, images",
  ],
  "cohere-ai": ["rerank", "reranking"],
  voyageai: ["embeddings, rerank", "embeddings, reranking"],
  "@langchain/cohere": ["rerank", "reranking"],
  ...Object.fromEntries(
    ALL.map((agent): [string, About] => [agent.package, [agent.protocol, checkedWith(agent)]]),
  ),
};

const TABLE_HEAD = `| Client | Version | Protocol | Checked | Checks passed | Date |
|---|---|---|---|---|---|
`;

const AGENTS = `| Client | Users |
|---|---|
${ALL.map((agent) => `| ${agent.package} | ${agent.users} |`)
  .toSorted()
  .join("\n")}`;

const DEFECTS = ALL.flatMap((agent) =>
  Object.entries(agent.faults ?? {}).map(
    ([check, why]) => `- **${agent.package} ${agent.version}, ${check}**: ${why}`,
  ),
);

const KNOWN_DEFECTS = `

These checks fail because of a defect in the client. The nightly run reports when it is fixed.

${DEFECTS.join("\n")}`;

/** Replaces the generated part between two comments. */
const replacePart = (page: string, name: string, text: string): string =>
  page.replace(
    new RegExp(`(<!-- ${name} -->\n\n)[^]*?(\n\n<!-- /${name} -->)`),
    (_, head: string, tail: string) => `${head}${text}${tail}`,
  );

/** Rewrites the rows of these clients. `date`: as it is shown. */
export function writePage(results: readonly ClientResult[], date: string): void {
  const rows = new Map<string, string>();
  const page = readFileSync(PAGE, "utf8");
  const [, table = ""] = /<!-- tested clients -->([^]*)<!-- \/tested clients -->/.exec(page) ?? [];
  for (const line of table
    .split("\n")
    .filter((one) => one.startsWith("| "))
    .slice(1))
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
  const tested = replacePart(page, "tested clients", `${TABLE_HEAD}${sorted.join("\n")}`);
  const agents = `${AGENTS}${DEFECTS.length > 0 ? KNOWN_DEFECTS : ""}`;
  writeFileSync(PAGE, replacePart(tested, "agents", agents));
}

/** A client and its version line: two lines of one SDK are two rows. */
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
