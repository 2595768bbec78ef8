// Shows a new secret once, by itself and in client snippets. The secret is masked after 1 min and
// is not stored anywhere else.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { SegmentedControl } from "./parts/fields.ts";
import { Code, CopyButton, NoteBox } from "./parts/basics.ts";

const SHOWN_MS = 60_000;

/** Snippets for clients. `url` is the gateway's URL for clients. */
const CLIENT_SNIPPETS: Readonly<Record<string, (url: string, key: string) => string>> = {
  curl: (url, key) => `curl ${url}/v1/chat/completions \\
  -H "authorization: Bearer ${key}" \\
  -H "content-type: application/json" \\
  -d '{"model": "MODEL", "messages": [{"role": "user", "content": "Hello"}]}'`,
  "OpenAI, Python": (url, key) => `from openai import OpenAI

client = OpenAI(base_url="${url}/v1", api_key="${key}")`,
  "OpenAI, JS": (url, key) => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${url}/v1", apiKey: "${key}" });`,
  Anthropic: (url, key) => `from anthropic import Anthropic

client = Anthropic(base_url="${url}", api_key="${key}")`,
  "Claude Code": (url, key) => `export ANTHROPIC_BASE_URL=${url}
export ANTHROPIC_API_KEY=${key}
claude`,
  Codex: (url, key) => `# ~/.codex/config.toml
model_provider = "tollgate"
[model_providers.tollgate]
name = "Tollgate"
base_url = "${url}/v1"
env_key = "TOLLGATE_KEY"
wire_api = "responses"

# in the shell
export TOLLGATE_KEY=${key}`,
};

export function NewSecret({ secret, url }: { secret: string; url: string }) {
  const [shown, show] = useState(true);
  const [client, choose] = useState("curl");
  useEffect(() => {
    const timer = setTimeout(() => show(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!shown)
    return html`<${NoteBox}
      ><p><span class="secret">${secret.slice(0, 7)}••••••••</span></p>
      <p class="quiet">
        The secret was shown for 1 minute and is not stored. If you lost it, rotate the key to get a
        new one.
      </p><//
    >`;
  return html`<div class="stack">
    <${NoteBox} tone="good"
      ><p>This secret is shown only once. It is masked after 1 minute.</p>
      <div class="row">
        <span class="secret grow" data-secret="">${secret}</span
        ><${CopyButton} text=${secret} name="Copy the key" /></div
    ><//>
    <${SegmentedControl}
      name="Client"
      value=${client}
      set=${choose}
      of=${Object.keys(CLIENT_SNIPPETS).map((name) => [name, name] as const)}
    />
    <${Code} text=${CLIENT_SNIPPETS[client]!(url, secret)} label=${`Settings for ${client}`} />
  </div>`;
}
