// The draft as code for curl, Python, and JavaScript, with each frontend's client library.
import {
  type Draft,
  type PlaygroundFrontend,
  isForm,
  type RequestFields,
} from "./playground-frontend.ts";

export const LANGUAGES = [
  ["curl", "curl"],
  ["python", "Python"],
  ["js", "JavaScript"],
] as const;

export interface SnippetInput {
  readonly frontend: PlaygroundFrontend;
  readonly draft: Draft;
  readonly zdr: string;
  readonly url: string;
}

export function codeSnippet(language: string, input: SnippetInput): string {
  if (language === "python") return pythonSnippet(input);
  return language === "js" ? javascriptSnippet(input) : curlSnippet(input);
}

/** Shortens base64 data. A complete image would make the rest of the code hard to find. */
const shortenBase64 = (text: string) =>
  text.replace(/([A-Za-z0-9+/]{60})[A-Za-z0-9+/=]{200,}/g, "$1…");
const shellQuote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

function curlSnippet({ frontend, draft, zdr, url }: SnippetInput): string {
  const body = frontend.buildBody(draft);
  const saved = frontend.snippet.savedFileName?.(draft);
  return [
    `curl ${shellQuote(url + frontend.path(draft))}`,
    frontend.keyHeader
      ? `-H "${frontend.keyHeader}: $TOLLGATE_KEY"`
      : `-H "authorization: Bearer $TOLLGATE_KEY"`,
    ...(zdr ? [`-H 'service-zdr: ${zdr}'`] : []),
    ...(saved ? [`--output ${saved}`] : []),
    ...(isForm(body)
      ? Object.entries(body).map(([name, value]) =>
          value instanceof File
            ? `-F ${shellQuote(`${name}=@"${value.name}";type=${value.type}`)}`
            : `--form-string ${shellQuote(`${name}=${value}`)}`,
        )
      : [
          "-H 'content-type: application/json'",
          `-d ${shellQuote(shortenBase64(JSON.stringify(body)))}`,
        ]),
  ].join(" \\\n  ");
}

const snippetBody = ({ frontend, draft }: SnippetInput): RequestFields =>
  frontend.snippet.arguments?.(draft) ?? frontend.buildBody(draft);

interface Library {
  /** Returns two parts: the import, and the expression that creates a client. */
  python(url: string): readonly [string, string];
  js(url: string): readonly [string, string];
}

const KEY = `os.environ["TOLLGATE_KEY"]`;
const LIBRARIES: Readonly<Record<PlaygroundFrontend["snippet"]["library"], Library>> = {
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

/** Adds the zero data retention header. Each library expects it in a different argument. */
function withZdr(
  words: RequestFields,
  library: PlaygroundFrontend["snippet"]["library"],
  zdr: string,
): RequestFields {
  if (!zdr) return words;
  const headers = { "service-zdr": zdr };
  if (library === "google")
    return {
      ...words,
      config: { ...(words["config"] as RequestFields), httpOptions: { headers } },
    };
  if (library === "cohere") return { ...words, request_options: { additional_headers: headers } };
  return { ...words, extra_headers: headers };
}

function pythonSnippet(input: SnippetInput): string {
  const { frontend, draft, zdr, url } = input;
  const { library, method, savedFileName } = frontend.snippet;
  const [from, client] = LIBRARIES[library].python(url);
  const streams = draft.stream && frontend.fields.includes("stream");
  // The method's name in Python.
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
    ...Object.entries(withZdr(snippetBody(input), library, zdr)).map(
      ([name, value]) => `    ${name}=${toPythonLiteral(value)},`,
    ),
    ")",
    ...(savedFileName
      ? [`answer.write_to_file(${JSON.stringify(savedFileName(draft))})`]
      : streams
        ? ["for event in answer:", "    print(event)"]
        : ["print(answer)"]),
  ].join("\n");
}

/** Formats a value as a Python literal. */
function toPythonLiteral(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null || value === undefined) return "None";
  if (value instanceof File) return `open(${JSON.stringify(value.name)}, "rb")`;
  if (Array.isArray(value)) return `[${value.map(toPythonLiteral).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${toPythonLiteral(each)}`)
      .join(", ")}}`;
  return shortenBase64(JSON.stringify(value));
}

function javascriptSnippet(input: SnippetInput): string {
  const { frontend, draft, zdr, url } = input;
  const { library, method, savedFileName } = frontend.snippet;
  const [from, client] = LIBRARIES[library].js(url);
  const streams = draft.stream && frontend.fields.includes("stream");
  const called = library === "google" && streams ? `${method}Stream` : method;
  const own = library === "google";
  const words = own ? withZdr(snippetBody(input), library, zdr) : snippetBody(input);
  const more = !own && zdr ? `, { headers: { "service-zdr": "${zdr}" } }` : "";
  return [
    from,
    ...(isForm(words) ? [`import { createReadStream } from "node:fs";`] : []),
    ...(savedFileName ? [`import { writeFile } from "node:fs/promises";`] : []),
    "",
    `const client = ${client};`,
    `const answer = await client.${called}({`,
    ...Object.entries(words).map(([name, value]) => `  ${name}: ${toJsLiteral(value)},`),
    `}${more});`,
    savedFileName
      ? `await writeFile(${JSON.stringify(savedFileName(draft))}, Buffer.from(await answer.arrayBuffer()));`
      : streams
        ? "for await (const event of answer) console.log(event);"
        : "console.log(answer);",
  ].join("\n");
}

const toJsLiteral = (value: unknown): string =>
  value instanceof File
    ? `createReadStream(${JSON.stringify(value.name)})`
    : shortenBase64(JSON.stringify(value, null, 2) ?? "undefined").replaceAll("\n", "\n  ");
