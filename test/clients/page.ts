// docs/clients.md: which client programs were run against the gateway, and with what result. `npm run clients -- --page` writes it.
// A client that was not run keeps its row.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface ClientResult {
  /** Name and version. */
  readonly title: string;
  readonly passed: number;
  readonly failed: number;
}

const PAGE = join(import.meta.dirname, "../../docs/clients.md");

/** What each client speaks to the gateway, and what is checked with it. */
const ABOUT: { readonly [client: string]: readonly [protocol: string, checked: string] } = {
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
};

const HEAD = `# Tested clients

Client programs that a nightly run drives against a gateway with providers of every protocol behind it. Each check compares the
client's result with the scripted answer, and the client's token counts with the ledger.

Run it with \`npm run clients -- --page\`. It installs the clients from npm and PyPI into a temporary folder and rewrites this page.

| Client | Version | Protocol | Checked | Checks passed | Date |
|---|---|---|---|---|---|
`;

/** Rewrites the rows of these clients. `date`: as it is shown. */
export function writePage(results: readonly ClientResult[], date: string): void {
  const rows = new Map<string, string>();
  const before = existsSync(PAGE) ? readFileSync(PAGE, "utf8").split("\n") : [];
  for (const line of before.filter((one) => one.startsWith("| ")).slice(1))
    rows.set(keyOf(line), line);
  for (const { title, passed, failed } of results) {
    const [name, version] = named(title);
    const about = ABOUT[name];
    if (!about) continue;
    const line = `| ${name} | ${version} | ${about.join(" | ")} | ${passed} of ${passed + failed} | ${date} |`;
    rows.set(keyOf(line), line);
  }
  const sorted = [...rows.keys()].toSorted().map((key) => rows.get(key)!);
  writeFileSync(PAGE, `${HEAD}${sorted.join("\n")}\n`);
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
