// Asking a model by hand, through any frontend: the answer as it comes, the wire beside it, and the same in other languages. The key is
// in this page's memory alone and goes with it.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import { ask, Refusal } from "../ask.ts";
import { useAsk } from "../data.ts";
import { Check, Choice, Select, Text } from "../parts/fields.ts";
import { icon } from "../parts/icons.ts";
import { Box, Code, Empty, Trouble } from "../parts/plain.ts";
import { toast } from "../parts/toasts.ts";
import { addressOf, useWord } from "../place.ts";
import { may } from "../rights.ts";
import { Answer } from "./playground-answer.ts";
import { LANGUAGES, lineOf, type Asked } from "./playground-code.ts";
import { Fields } from "./playground-fields.ts";
import { type Draft, isForm, type Words } from "./playground-frontend.ts";
import {
  firstModel,
  FRONTENDS,
  frontendOf,
  type Mounted,
  offered,
} from "./playground-frontends.ts";
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

/** The frontends and models that are here, and which of them are chosen. */
function useModel() {
  const status = useAsk<{ url: string; frontends: readonly Mounted[] }>("status");
  const words = status.value ? offered(status.value.frontends) : [];
  const [word, setFrontend] = useWord("frontend", words.includes("chat") ? "chat" : words[0]);
  const frontend = frontendOf(word);
  const listed = useAsk<{ models: readonly { id: string }[] }>("models.list", {
    kind: frontend.kind,
  });
  const ids = (listed.value?.models ?? []).map(({ id }) => id);
  const [said, say] = useWord("model");
  const [chosen, keep] = useState(said !== "");
  const model = chosen ? said : firstModel(frontend, ids);
  const choose = (to: string) => {
    setFrontend(to);
    // A model of another kind would not answer.
    if (frontendOf(to).kind === frontend.kind) return;
    keep(false);
    say("");
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
    hint: listed.value && hintOf(ids.length, frontend.kind),
    setModel: (to: string) => (keep(true), say(to)),
  };
}

export function Playground() {
  const { url, none, words, word, frontend, choose, model, ids, hint, setModel } = useModel();
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
  const begin = (event: SubmitEvent) => {
    event.preventDefault();
    over.current?.abort();
    over.current = new AbortController();
    void send({ frontend, draft, key: key.trim(), zdr }, set, over.current.signal);
  };
  const busy = sent !== undefined && sent.ended === undefined && sent.problem === undefined;
  if (none)
    return html`<${Box}
      ><${Empty} of="playground"
        ><p>
          No frontend is mounted that leads to models. Add one under frontends in gateway.yaml.
        </p><//
      ><//
    >`;
  const lacks = frontend.needs !== undefined && draft[frontend.needs] === undefined;
  return html`<div class="split">
    <div class="stack">
      <${Box} title="Ask">
        <form class="form" onSubmit=${begin}>
          <${Select}
            name="Frontend"
            value=${word}
            set=${choose}
            of=${words.map((name) => [name, FRONTENDS[name]!.said])}
          />
          <${Text}
            name="Model"
            value=${model}
            set=${setModel}
            options=${ids.slice(0, OFFERED)}
            required=${true}
            hint=${hint}
          />
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
      <${InCode} of=${{ frontend, draft, zdr, url }} />
    </div>
    <div class="stack">
      ${sent?.problem && html`<${Trouble} problem=${sent.problem} />`}
      <${Answer} sent=${sent} />
      <${Wire} body=${frontend.body(draft)} sent=${sent} />
    </div>
  </div>`;
}

/** Names that are offered while one is typed. */
const OFFERED = 500;
const hintOf = (n: number, kind: string): string =>
  n === 0
    ? `No ${kind} model is known here. Enter the name of one.`
    : `${n} ${kind} ${n === 1 ? "model" : "models"} to choose from`;

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
    ${value === "" && may("keys.create") && html`<p class="small row"><button type="button" class="button small" onClick=${make}>${icon("keys")}Make one for an hour</button></p>`}
    ${problem && html`<${Trouble} problem=${problem} />`}
  </div>`;
}

function InCode({ of }: { of: Asked }) {
  const [language, choose] = useState<string>("curl");
  const text = lineOf(language, of);
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
