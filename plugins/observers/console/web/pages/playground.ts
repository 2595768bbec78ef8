// Asking a model by hand, through any frontend: the answer as it comes, the wire beside it, and the same in other languages. The key is
// in this page's memory alone and goes with it.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import { ask, Refusal } from "../ask.ts";
import { useAsk } from "../data.ts";
import { Check, Choice, Text } from "../parts/fields.ts";
import { icon } from "../parts/icons.ts";
import { Box, Code, Trouble } from "../parts/plain.ts";
import { toast } from "../parts/toasts.ts";
import { addressOf, useWord } from "../place.ts";
import { Answer } from "./playground-answer.ts";
import { LANGUAGES, lineOf } from "./playground-code.ts";
import { bodyOf, PROTOCOLS, type Draft, type ProtocolName } from "./playground-wire.ts";
import { send, type Sent } from "./playground-send.ts";

/** In no storage: it is gone with the page. */
let keptKey = "";
const HOUR = 3_600_000;

const isProtocol = (word: string): word is ProtocolName => Object.hasOwn(PROTOCOLS, word);

export function Playground() {
  const [said, setProtocol] = useWord("frontend", "chat");
  const protocol = isProtocol(said) ? said : "chat";
  const [model, setModel] = useWord("model", protocol === "images" ? "demo/image" : "demo/echo");
  const [draft, change] = useState<Omit<Draft, "model">>({
    system: "",
    prompt: "Hello. What does a toll gate do?",
    stream: true,
    tool: false,
    picture: undefined,
  });
  const [key, setKey] = useState(keptKey);
  const [zdr, setZdr] = useState("");
  const [sent, set] = useState<Sent>();
  const over = useRef<AbortController>(undefined);
  useEffect(() => () => over.current?.abort(), []);
  const put = (part: Partial<Draft>) => change((before) => ({ ...before, ...part }));
  const body = bodyOf(protocol, { ...draft, model });
  const remember = (to: string) => {
    keptKey = to;
    setKey(to);
  };
  const begin = (event: SubmitEvent) => {
    event.preventDefault();
    over.current?.abort();
    over.current = new AbortController();
    void send({ protocol, body, key: key.trim(), zdr }, set, over.current.signal);
  };
  const busy = sent !== undefined && sent.ended === undefined && sent.problem === undefined;
  return html`<div class="split">
    <div class="stack">
      <${Box} title="Ask">
        <form class="form" onSubmit=${begin}>
          <${Choice}
            name="Frontend"
            value=${protocol}
            set=${(to: string) => (setProtocol(to), (to === "images") !== (protocol === "images") && setModel(to === "images" ? "demo/image" : "demo/echo"))}
            of=${Object.entries(PROTOCOLS).map(([name, { said }]) => [name, said])}
          />
          <${Model} value=${model} set=${setModel} images=${protocol === "images"} />
          <${Key} value=${key} set=${remember} />
          ${protocol !== "images" && html`<${Text} name="System" value=${draft.system} set=${(system: string) => put({ system })} placeholder="none" />`}
          <${Text}
            name=${protocol === "images" ? "Picture of" : "Prompt"}
            value=${draft.prompt}
            set=${(prompt: string) => put({ prompt })}
            lines=${5}
            required=${true}
          />
          <div class="row">
            <${Check}
              name="Stream"
              value=${draft.stream}
              set=${(stream: boolean) => put({ stream })}
            />
            ${protocol !== "images" && html`<${Check} name="Offer a tool" value=${draft.tool} set=${(tool: boolean) => put({ tool })} /><${Picture} value=${draft.picture} set=${(picture: string | undefined) => put({ picture })} />`}
            <${Check}
              name="Zero data retention"
              value=${zdr === "required"}
              set=${(to: boolean) => setZdr(to ? "required" : "")}
            />
          </div>
          <footer>
            ${busy && html`<button type="button" class="button" onClick=${() => over.current?.abort()}>${icon("stop")}Stop</button>`}
            <button type="submit" class="button main" disabled=${key.trim() === "" || busy}>
              ${icon("play")}Send
            </button>
          </footer>
        </form>
      <//>
      <${InCode} protocol=${protocol} body=${body} zdr=${zdr} />
    </div>
    <div class="stack">
      ${sent?.problem && html`<${Trouble} problem=${sent.problem} />`}
      <${Answer} sent=${sent} />
      <${Wire} body=${body} sent=${sent} />
    </div>
  </div>`;
}

function Model({
  value,
  set,
  images,
}: {
  value: string;
  set: (to: string) => void;
  images: boolean;
}) {
  const { value: listed } = useAsk<{ models: readonly { id: string; kind: string }[] }>(
    "models.list",
    { kind: images ? "image" : "chat" },
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

/** Of an image to be looked at, at most. */
const MOST_BYTES = 4 * 1_048_576;

function Picture({
  value,
  set,
}: {
  value: string | undefined;
  set: (to: string | undefined) => void;
}) {
  const chosen = (event: Event) => {
    const field = event.target as HTMLInputElement;
    const file = field.files?.[0];
    field.value = "";
    if (!file) return;
    if (file.size > MOST_BYTES) return toast("A picture here is at most 4 MiB.", "bad");
    const reader = new FileReader();
    reader.addEventListener("load", () => set(reader.result as string));
    reader.readAsDataURL(file);
  };
  if (value)
    return html`<button type="button" class="button small" onClick=${() => set(undefined)}>
      ${icon("close")}Leave the picture out
    </button>`;
  return html`<label class="button small"
    >${icon("image")}Add a picture<input
      class="unseen"
      type="file"
      accept="image/png,image/jpeg,image/webp,image/gif"
      onChange=${chosen}
  /></label>`;
}

function InCode({ protocol, body, zdr }: { protocol: ProtocolName; body: object; zdr: string }) {
  const [language, choose] = useState<string>("curl");
  const { value } = useAsk<{ url: string }>("status");
  const text = lineOf(language, { protocol, body, zdr, url: value?.url ?? "" });
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
function Wire({ body, sent }: { body: object; sent: Sent | undefined }) {
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
      ? JSON.stringify(body, null, 2)
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

const MOST = 60_000;
const cut = (text: string) =>
  text.length > MOST ? `${text.slice(0, MOST)}\n… ${text.length - MOST} characters more` : text;
