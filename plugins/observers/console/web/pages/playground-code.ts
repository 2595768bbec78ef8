// The draft as a program would send it: in curl, in Python and in JavaScript, with the field's own libraries.
import { headerOf, PROTOCOLS, type ProtocolName } from "./playground-wire.ts";

export const LANGUAGES = [
  ["curl", "curl"],
  ["python", "Python"],
  ["js", "JavaScript"],
] as const;

interface Request {
  readonly protocol: ProtocolName;
  readonly body: object;
  readonly zdr: string;
  readonly url: string;
}

export function lineOf(language: string, request: Request): string {
  if (language === "python") return python(request);
  return language === "js" ? javascript(request) : curl(request);
}

/** A picture in full would hide everything else. */
const short = (text: string) => text.replace(/([A-Za-z0-9+/]{60})[A-Za-z0-9+/=]{200,}/g, "$1…");

function curl({ protocol, body, zdr, url }: Request): string {
  const quoted = short(JSON.stringify(body)).replaceAll("'", `'\\''`);
  return [
    `curl ${url}${PROTOCOLS[protocol].path} \\`,
    headerOf(protocol)
      ? `  -H "x-api-key: $TOLLGATE_KEY" \\`
      : `  -H "authorization: Bearer $TOLLGATE_KEY" \\`,
    `  -H 'content-type: application/json' \\`,
    ...(zdr ? [`  -H 'service-zdr: ${zdr}' \\`] : []),
    `  -d '${quoted}'`,
  ].join("\n");
}

const CALLS = {
  chat: "chat.completions.create",
  messages: "messages.create",
  responses: "responses.create",
  images: "images.generate",
} as const;

function python({ protocol, body, zdr, url }: Request): string {
  const own = protocol === "messages";
  const name = own ? "Anthropic" : "OpenAI";
  const words = Object.entries(body).map(([name, value]) => `    ${name}=${literal(value)},`);
  return [
    "import os",
    `from ${own ? "anthropic" : "openai"} import ${name}`,
    "",
    `client = ${name}(base_url="${url}${own ? "" : "/v1"}", api_key=os.environ["TOLLGATE_KEY"])`,
    `answer = client.${CALLS[protocol]}(`,
    ...words,
    ...(zdr ? [`    extra_headers={"service-zdr": "${zdr}"},`] : []),
    ")",
    ...("stream" in body ? ["for event in answer:", "    print(event)"] : ["print(answer)"]),
  ].join("\n");
}

/** JSON with Python's words for what has no quotes. */
function literal(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null || value === undefined) return "None";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${literal(each)}`)
      .join(", ")}}`;
  return short(JSON.stringify(value));
}

function javascript({ protocol, body, zdr, url }: Request): string {
  const own = protocol === "messages";
  const name = own ? "Anthropic" : "OpenAI";
  const said = short(JSON.stringify(body, null, 2));
  return [
    `import ${name} from "${own ? "@anthropic-ai/sdk" : "openai"}";`,
    "",
    `const client = new ${name}({ baseURL: "${url}${own ? "" : "/v1"}", apiKey: process.env.TOLLGATE_KEY });`,
    `const answer = await client.${CALLS[protocol]}(${said}${zdr ? `, { headers: { "service-zdr": "${zdr}" } }` : ""});`,
    ...("stream" in body
      ? ["for await (const event of answer) console.log(event);"]
      : ["console.log(answer);"]),
  ].join("\n");
}
