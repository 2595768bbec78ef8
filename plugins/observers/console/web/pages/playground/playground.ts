// Playground page: sends requests through any frontend and shows the response as it arrives, the
// raw exchange, and equivalent code. The API key is kept only in the page's memory and is lost when
// the page closes.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import { useQuery } from "../../use-query.ts";
import { Checkbox, SegmentedControl, Select, TextField } from "../../parts/fields.ts";
import { icon } from "../../parts/icons.ts";
import { Box, Code, EmptyState, ErrorNote } from "../../parts/basics.ts";
import { buildUrl, useQueryParam } from "../../location.ts";
import { ResponseView, DraftFields } from "./playground-response.ts";
import { LANGUAGES, codeSnippet, type SnippetInput } from "./playground-code.ts";
import { KeyField, useKey } from "./playground-key.ts";
import { type Draft, isForm, type RequestFields } from "./playground-frontend.ts";
import {
  defaultModelOf,
  FRONTENDS,
  findFrontend,
  type MountedFrontend,
  availableFrontends,
} from "./playground-operations.ts";
import { send, type PlaygroundExchange } from "./playground-send.ts";

const INITIAL_DRAFT: Omit<Draft, "model"> = {
  system: "",
  prompt: "Hello. What does a toll gate do?",
  stream: true,
  tool: false,
  image: undefined,
  audio: undefined,
  documents:
    "Cats sleep most of the day.\nA toll gate takes a fee from what passes.\nThe price for a vehicle depends on its axles.",
  voice: "alloy",
  format: "wav",
};

/** Returns the available and the selected frontends and models. */
function useModel() {
  const status = useQuery<{ url: string; frontends: readonly MountedFrontend[] }>("status");
  const words = status.value ? availableFrontends(status.value.frontends) : [];
  const [word, setFrontend] = useQueryParam("frontend", words.includes("chat") ? "chat" : words[0]);
  const frontend = findFrontend(word);
  const listed = useQuery<{ models: readonly { id: string }[] }>("models.list", {
    operation: frontend.operation,
  });
  const ids = (listed.value?.models ?? []).map(({ id }) => id);
  const [modelParam, setModelParam] = useQueryParam("model");
  const [chosen, keep] = useState(modelParam !== "");
  const model = chosen ? modelParam : defaultModelOf(frontend, ids);
  const choose = (to: string) => {
    setFrontend(to);
    // A model of another type could not respond.
    if (findFrontend(to).operation === frontend.operation) return;
    keep(false);
    setModelParam("");
  };
  return {
    url: status.value?.url ?? "",
    none: status.value !== undefined && words.length === 0,
    words,
    word,
    frontend,
    choose,
    model,
    ids,
    hint: listed.value && modelHint(ids.length, frontend.operation),
    setModel: (to: string) => (keep(true), setModelParam(to)),
  };
}

export function PlaygroundPage() {
  const { url, none, words, word, frontend, choose, model, ids, hint, setModel } = useModel();
  const [begun, change] = useState(INITIAL_DRAFT);
  const [key, setKey] = useKey();
  const [zdr, setZdr] = useState("");
  const [sent, set] = useState<PlaygroundExchange>();
  const over = useRef<AbortController>(undefined);
  useEffect(() => () => over.current?.abort(), []);
  const put = (part: Partial<Draft>) => change((before) => ({ ...before, ...part }));
  const streams = begun.stream && frontend.fields.includes("stream");
  const draft = { ...begun, model, stream: streams };
  const begin = (event: SubmitEvent) => {
    event.preventDefault();
    over.current?.abort();
    over.current = new AbortController();
    void send({ frontend, draft, key: key.trim(), zdr }, set, over.current.signal);
  };
  const busy = sent !== undefined && sent.totalMs === undefined && sent.error === undefined;
  if (none)
    return html`<${Box}
      ><${EmptyState} of="playground"
        ><p>No frontend for models is configured. Add one under frontends in gateway.yaml.</p><//
      ><//
    >`;
  const lacks = frontend.requiredField !== undefined && draft[frontend.requiredField] === undefined;
  return html`<div class="split">
    <div class="stack">
      <${Box} title="Ask">
        <form class="form" onSubmit=${begin}>
          <${Select}
            name="Frontend"
            value=${word}
            set=${choose}
            options=${words.map((name) => [name, FRONTENDS[name]!.title])}
          />
          <${TextField}
            name="Model"
            value=${model}
            set=${setModel}
            options=${ids.slice(0, MAX_SUGGESTIONS)}
            required=${true}
            hint=${hint}
          />
          <${KeyField} value=${key} set=${setKey} />
          <${DraftFields} frontend=${frontend} draft=${draft} put=${put}>
            <${Checkbox}
              name="Zero data retention"
              value=${zdr === "required"}
              set=${(to: boolean) => setZdr(to ? "required" : "")}
            />
          <//>
          <footer>
            ${busy && html`<button type="button" class="button" onClick=${() => over.current?.abort()}>${icon("stop")}Stop</button>`}
            <button
              type="submit"
              class="button main"
              disabled=${key.trim() === "" || busy || lacks}
            >
              ${icon("play")}Send
            </button>
          </footer>
        </form>
      <//>
      <${CodeSnippet} of=${{ frontend, draft, zdr, url }} />
    </div>
    <div class="stack">
      ${sent?.error && html`<${ErrorNote} problem=${sent.error} />`}
      <${ResponseView} sent=${sent} />
      <${RawExchange} body=${frontend.buildBody(draft)} sent=${sent} />
    </div>
  </div>`;
}

/** Maximum number of suggestions while the reader types. */
const MAX_SUGGESTIONS = 500;
const modelHint = (n: number, operation: string): string =>
  n === 0
    ? `No known ${operation} model. Enter a model name.`
    : `${n} ${operation} ${n === 1 ? "model" : "models"} to choose from`;

function CodeSnippet({ of }: { of: SnippetInput }) {
  const [language, choose] = useState<string>("curl");
  const text = codeSnippet(language, of);
  const choice = html`<${SegmentedControl}
    name="Language"
    value=${language}
    set=${choose}
    of=${LANGUAGES}
  />`;
  return html`<${Box} title="Code for this request" actions=${choice}
    ><${Code} label="The request in code" text=${text}
  /><//>`;
}

/** The exact request and response. */
function RawExchange({
  body,
  sent,
}: {
  body: RequestFields;
  sent: PlaygroundExchange | undefined;
}) {
  const [side, choose] = useState("answer");
  const choice = html`<${SegmentedControl}
    name="Side"
    value=${side}
    set=${choose}
    of=${[
      ["request", "Request"],
      ["answer", "Answer"],
      ["head", "Head"],
    ]}
  />`;
  const text =
    side === "request"
      ? isForm(body)
        ? formatForm(body)
        : JSON.stringify(body, null, 2)
      : side === "head"
        ? sent?.status === undefined
          ? ""
          : [
              `${sent.status}`,
              ...Object.entries(sent.headers).map(([name, value]) => `${name}: ${value}`),
            ].join("\n")
        : (sent?.raw ?? "");
  return html`<${Box} title="Raw bytes" actions=${choice}>
    ${text ? html`<${Code} wrap=${true} label="Raw HTTP exchange" text=${truncate(text)} />` : html`<p class="quiet small">No data received yet.</p>`}
    ${sent?.headers["x-request-id"] && html`<p class="small"><a href=${buildUrl(`/requests/${sent.headers["x-request-id"]}`)}>Details of this request: routing, timing, and cost</a></p>`}
  <//>`;
}

/** Formats a form with one line per part. */
const formatForm = (body: RequestFields): string =>
  Object.entries(body)
    .map(([name, value]) =>
      value instanceof File
        ? `${name}: ${value.name} (${value.type}, ${value.size} bytes)`
        : `${name}: ${value}`,
    )
    .join("\n");

const MAX_CHARACTERS = 60_000;
const truncate = (text: string) =>
  text.length > MAX_CHARACTERS
    ? `${text.slice(0, MAX_CHARACTERS)}\n… ${text.length - MAX_CHARACTERS} more characters`
    : text;
