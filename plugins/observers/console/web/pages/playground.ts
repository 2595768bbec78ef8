// Asking a model by hand, through any frontend: the answer as it comes, the wire beside it, and the same in other languages. The key is
// in this page's memory alone and goes with it.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import { ask, Refusal } from "../ask.ts";
import { useAsk } from "../data.ts";
import { Check, Choice, Select, Text } from "../parts/fields.ts";
import { icon } from "../parts/icons.ts";
import { Box, Code, Trouble } from "../parts/plain.ts";
import { toast } from "../parts/toasts.ts";
import { addressOf, useWord } from "../place.ts";
import { Answer } from "./playground-answer.ts";
import { LANGUAGES, lineOf, type Asked } from "./playground-code.ts";
import { Fields } from "./playground-fields.ts";
import { type Draft, isForm, type Words } from "./playground-frontend.ts";
import { FRONTENDS, frontendOf } from "./playground-frontends.ts";
import { send, type Sent } from "./playground-send.ts";

/** In no storage: it is gone with the page. */
let keptKey = "";
const HOUR = 3_600_000;

const BEGUN: Omit<Draft, "model"> = {
  system: "",
  prompt: "Hello. What does a toll gate do?",
  stream: true,
  tool: false,
  picture: undefined,
  sound: undefined,
  documents:
    "Cats sleep most of the day.\nA toll gate takes a fee from what passes.\nWhat a vehicle pays depends on its axles.",
  voice: "alloy",
  format: "wav",
};

export function Playground() {
  const [word, setFrontend] = useWord("frontend", "chat");
  const frontend = frontendOf(word);
  const [model, setModel] = useWord("model", frontend.usual);
  const [begun, change] = useState(BEGUN);
  const [key, setKey] = useState(keptKey);
  const [zdr, setZdr] = useState("");
  const [sent, set] = useState<Sent>();
  const over = useRef<AbortController>(undefined);
  useEffect(() => () => over.current?.abort(), []);
  const put = (part: Partial<Draft>) => change((before) => ({ ...before, ...part }));
  const streams = begun.stream && frontend.fields.includes("stream");
  const draft = { ...begun, model, stream: streams };
  const remember = (to: string) => {
    keptKey = to;
    setKey(to);
  };
  const choose = (to: string) => {
    setFrontend(to);
    // A model of another kind would not answer.
    if (frontendOf(to).kind !== frontend.kind) setModel(frontendOf(to).usual);
  };
  const begin = (event: SubmitEvent) => {
    event.preventDefault();
    over.current?.abort();
    over.current = new AbortController();
    void send({ frontend, draft, key: key.trim(), zdr }, set, over.current.signal);
  };
  const busy = sent !== undefined && sent.ended === undefined && sent.problem === undefined;
  const lacks = frontend.needs !== undefined && draft[frontend.needs] === undefined;
  return html`<div class="split">
    <div class="stack">
      <${Box} title="Ask">
        <form class="form" onSubmit=${begin}>
          <${Select}
            name="Frontend"
            value=${word}
            set=${choose}
            of=${Object.entries(FRONTENDS).map(([name, { said }]) => [name, said])}
          />
          <${Model} value=${model} set=${setModel} kind=${frontend.kind} />
          <${Key} value=${key} set=${remember} />
          <${Fields} frontend=${frontend} draft=${draft} put=${put}>
            <${Check}
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
      <${InCode} of=${{ frontend, draft, zdr }} />
    </div>
    <div class="stack">
      ${sent?.problem && html`<${Trouble} problem=${sent.problem} />`}
      <${Answer} sent=${sent} />
      <${Wire} body=${frontend.body(draft)} sent=${sent} />
    </div>
  </div>`;
}

function Model({ value, set, kind }: { value: string; set: (to: string) => void; kind: string }) {
  const { value: listed } = useAsk<{ models: readonly { id: string; kind: string }[] }>(
    "models.list",
    { kind },
  );
  const ids = (listed?.models ?? []).map(({ id }) => id).slice(0, 500);
  return html`<${Text}
    name="Model"
    value=${value}
    set=${set}
    options=${ids}
    required=${true}
    hint=${`${ids.length} are known${value ? "" : ": say one of them"}`}
  />`;
}

function Key({ value, set }: { value: string; set: (to: string) => void }) {
  const [problem, refused] = useState<Refusal>();
  const make = () =>
    ask<{ secret: string }>("keys.create", { name: "playground", expires: Date.now() + HOUR }).then(
      ({ secret }) => (set(secret), toast("A key that ends in an hour. It is in this page alone.")),
      refused,
    );
  return html`<div class="stack tight">
    <div class="row filters">
      <${Text}
        wide=${true}
        name="Key"
        value=${value}
        set=${set}
        secret=${true}
        placeholder="tg_…"
        hint="It stays in this page's memory and is gone when you leave."
      />
    </div>
    ${value === "" && html`<p class="small row"><button type="button" class="button small" onClick=${make}>${icon("keys")}Make one for an hour</button></p>`}
    ${problem && html`<${Trouble} problem=${problem} />`}
  </div>`;
}

function InCode({ of }: { of: Omit<Asked, "url"> }) {
  const [language, choose] = useState<string>("curl");
  const { value } = useAsk<{ url: string }>("status");
  const text = lineOf(language, { ...of, url: value?.url ?? "" });
  const choice = html`<${Choice}
    name="Language"
    value=${language}
    set=${choose}
    of=${LANGUAGES}
  />`;
  return html`<${Box} title="The same in code" actions=${choice}
    ><${Code} label="The request in code" text=${text}
  /><//>`;
}

/** What is sent and what came back, to the letter. */
function Wire({ body, sent }: { body: Words; sent: Sent | undefined }) {
  const [side, choose] = useState("answer");
  const choice = html`<${Choice}
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
        ? partsOf(body)
        : JSON.stringify(body, null, 2)
      : side === "head"
        ? sent?.status === undefined
          ? ""
          : [
              `${sent.status}`,
              ...Object.entries(sent.headers).map(([name, value]) => `${name}: ${value}`),
            ].join("\n")
        : (sent?.raw ?? "");
  return html`<${Box} title="The wire" actions=${choice}>
    ${text ? html`<${Code} wrap=${true} label="What went over the wire" text=${cut(text)} />` : html`<p class="quiet small">Nothing has come yet.</p>`}
    ${sent?.headers["x-request-id"] && html`<p class="small"><a href=${addressOf(`/requests/${sent.headers["x-request-id"]}`)}>This request's story: its way, its time and its bill</a></p>`}
  <//>`;
}

/** A form, a part a line. */
const partsOf = (body: Words): string =>
  Object.entries(body)
    .map(([name, value]) =>
      value instanceof File
        ? `${name}: ${value.name} (${value.type}, ${value.size} bytes)`
        : `${name}: ${value}`,
    )
    .join("\n");

const MOST = 60_000;
const cut = (text: string) =>
  text.length > MOST ? `${text.slice(0, MOST)}\n… ${text.length - MOST} characters more` : text;
