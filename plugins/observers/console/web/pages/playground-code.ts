// The draft as a program would send it: in curl, in Python and in JavaScript, with the libraries that programs use.
import { type Draft, type Frontend, isForm, type Words } from "./playground-frontend.ts";

export const LANGUAGES = [
  ["curl", "curl"],
  ["python", "Python"],
  ["js", "JavaScript"],
] as const;

export interface Asked {
  readonly frontend: Frontend;
  readonly draft: Draft;
  readonly zdr: string;
  readonly url: string;
}

export function lineOf(language: string, asked: Asked): string {
  if (language === "python") return python(asked);
  return language === "js" ? javascript(asked) : curl(asked);
}

/** A picture in full would hide everything else. */
const short = (text: string) => text.replace(/([A-Za-z0-9+/]{60})[A-Za-z0-9+/=]{200,}/g, "$1…");
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

function curl({ frontend, draft, zdr, url }: Asked): string {
  const body = frontend.body(draft);
  const saved = frontend.code.saves?.(draft);
  return [
    `curl ${quoted(url + frontend.path(draft))}`,
    frontend.as ? `-H "${frontend.as}: $TOLLGATE_KEY"` : `-H "authorization: Bearer $TOLLGATE_KEY"`,
    ...(zdr ? [`-H 'service-zdr: ${zdr}'`] : []),
    ...(saved ? [`--output ${saved}`] : []),
    ...(isForm(body)
      ? Object.entries(body).map(([name, value]) =>
          value instanceof File
            ? `-F ${quoted(`${name}=@"${value.name}";type=${value.type}`)}`
            : `--form-string ${quoted(`${name}=${value}`)}`,
        )
      : ["-H 'content-type: application/json'", `-d ${quoted(short(JSON.stringify(body)))}`]),
  ].join(" \\\n  ");
}

const wordsOf = ({ frontend, draft }: Asked): Words =>
  frontend.code.words?.(draft) ?? frontend.body(draft);

interface Library {
  /** Two lines: where it comes from, and a client of it. */
  python(url: string): readonly [string, string];
  js(url: string): readonly [string, string];
}

const KEY = `os.environ["TOLLGATE_KEY"]`;
const LIBRARIES: Readonly<Record<Frontend["code"]["library"], Library>> = {
  openai: {
    python: (url) => ["from openai import OpenAI", `OpenAI(base_url="${url}/v1", api_key=${KEY})`],
    js: (url) => [
      `import OpenAI from "openai";`,
      `new OpenAI({ baseURL: "${url}/v1", apiKey: process.env.TOLLGATE_KEY })`,
    ],
  },
  anthropic: {
    python: (url) => [
      "from anthropic import Anthropic",
      `Anthropic(base_url="${url}", api_key=${KEY})`,
    ],
    js: (url) => [
      `import Anthropic from "@anthropic-ai/sdk";`,
      `new Anthropic({ baseURL: "${url}", apiKey: process.env.TOLLGATE_KEY })`,
    ],
  },
  cohere: {
    python: (url) => ["import cohere", `cohere.ClientV2(base_url="${url}", api_key=${KEY})`],
    js: (url) => [
      `import { CohereClientV2 } from "cohere-ai";`,
      `new CohereClientV2({ environment: "${url}", token: process.env.TOLLGATE_KEY })`,
    ],
  },
  google: {
    python: (url) => [
      "from google import genai",
      `genai.Client(api_key=${KEY}, http_options={"base_url": "${url}"})`,
    ],
    js: (url) => [
      `import { GoogleGenAI } from "@google/genai";`,
      `new GoogleGenAI({ apiKey: process.env.TOLLGATE_KEY, httpOptions: { baseUrl: "${url}" } })`,
    ],
  },
};

/** What says that it is not to be kept goes in another place in each library. */
function withZdr(words: Words, library: Frontend["code"]["library"], zdr: string): Words {
  if (!zdr) return words;
  const headers = { "service-zdr": zdr };
  if (library === "google")
    return { ...words, config: { ...(words["config"] as Words), httpOptions: { headers } } };
  if (library === "cohere") return { ...words, request_options: { additional_headers: headers } };
  return { ...words, extra_headers: headers };
}

function python(asked: Asked): string {
  const { frontend, draft, zdr, url } = asked;
  const { library, method, saves } = frontend.code;
  const [from, client] = LIBRARIES[library].python(url);
  const streams = draft.stream && frontend.fields.includes("stream");
  // In Python's spelling.
  const called =
    library === "google"
      ? streams
        ? "models.generate_content_stream"
        : "models.generate_content"
      : method;
  return [
    "import os",
    from,
    "",
    `client = ${client}`,
    `answer = client.${called}(`,
    ...Object.entries(withZdr(wordsOf(asked), library, zdr)).map(
      ([name, value]) => `    ${name}=${literal(value)},`,
    ),
    ")",
    ...(saves
      ? [`answer.write_to_file(${JSON.stringify(saves(draft))})`]
      : streams
        ? ["for event in answer:", "    print(event)"]
        : ["print(answer)"]),
  ].join("\n");
}

/** JSON with Python's words for what has no quotes. */
function literal(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null || value === undefined) return "None";
  if (value instanceof File) return `open(${JSON.stringify(value.name)}, "rb")`;
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${literal(each)}`)
      .join(", ")}}`;
  return short(JSON.stringify(value));
}

function javascript(asked: Asked): string {
  const { frontend, draft, zdr, url } = asked;
  const { library, method, saves } = frontend.code;
  const [from, client] = LIBRARIES[library].js(url);
  const streams = draft.stream && frontend.fields.includes("stream");
  const called = library === "google" && streams ? `${method}Stream` : method;
  const own = library === "google";
  const words = own ? withZdr(wordsOf(asked), library, zdr) : wordsOf(asked);
  const more = !own && zdr ? `, { headers: { "service-zdr": "${zdr}" } }` : "";
  return [
    from,
    ...(isForm(words) ? [`import { createReadStream } from "node:fs";`] : []),
    ...(saves ? [`import { writeFile } from "node:fs/promises";`] : []),
    "",
    `const client = ${client};`,
    `const answer = await client.${called}({`,
    ...Object.entries(words).map(([name, value]) => `  ${name}: ${written(value)},`),
    `}${more});`,
    saves
      ? `await writeFile(${JSON.stringify(saves(draft))}, Buffer.from(await answer.arrayBuffer()));`
      : streams
        ? "for await (const event of answer) console.log(event);"
        : "console.log(answer);",
  ].join("\n");
}

const written = (value: unknown): string =>
  value instanceof File
    ? `createReadStream(${JSON.stringify(value.name)})`
    : short(JSON.stringify(value, null, 2) ?? "undefined").replaceAll("\n", "\n  ");
