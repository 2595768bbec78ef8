// Realtime page: talks with a model over a WebSocket, by microphone where the browser has one, and by
// text. Each response is billed to the key that the reader enters.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import { CommandError } from "../../admin-client.ts";
import { useQuery } from "../../use-query.ts";
import { Checkbox, SegmentedControl, TextField } from "../../parts/fields.ts";
import { icon } from "../../parts/icons.ts";
import { Badge, Box, Code, EmptyState, ErrorNote, NoteBox } from "../../parts/basics.ts";
import { buildUrl, useQueryParam } from "../../location.ts";
import { isAllowed } from "../../session.ts";
import { KeyField, useKey } from "./playground-key.ts";
import {
  canRecord,
  SAMPLE_RATE,
  Speaker,
  startMicrophone,
  type Microphone,
} from "./realtime-audio.ts";
import { addEvent, EMPTY, type Conversation, type Turn } from "./realtime-conversation.ts";
import { RealtimeConnection, type RealtimeEvent } from "./realtime-connection.ts";

type State = "closed" | "connecting" | "open";

/** Returns the session of a connection. Its format is that of the current API. */
const sessionOf = (instructions: string, mode: string): RealtimeEvent => ({
  type: "session.update",
  session: {
    type: "realtime",
    output_modalities: [mode === "voice" ? "audio" : "text"],
    ...(instructions && { instructions }),
    ...(mode === "voice" && {
      audio: {
        input: {
          format: { type: "audio/pcm", rate: SAMPLE_RATE },
          turn_detection: { type: "server_vad" },
        },
        output: { format: { type: "audio/pcm", rate: SAMPLE_RATE } },
      },
    }),
  },
});

/** Connection, conversation, and audio of the page. They end when the page is left. */
function useRealtime() {
  const [state, set] = useState<State>("closed");
  const [talk, say] = useState<Conversation>(EMPTY);
  const [problem, report] = useState<CommandError>();
  const [isRecording, record] = useState(false);
  const connection = useRef<RealtimeConnection>(undefined);
  const microphone = useRef<Microphone>(undefined);
  const speaker = useRef<Speaker>(undefined);
  const mute = () => {
    microphone.current?.stop();
    microphone.current = undefined;
    record(false);
  };
  const end = (why?: CommandError) => {
    mute();
    speaker.current?.close();
    speaker.current = undefined;
    connection.current?.close();
    connection.current = undefined;
    report(why);
    set("closed");
  };
  useEffect(() => () => end(), []);
  const send = (event: RealtimeEvent) => {
    connection.current?.send(event);
    if (event.type !== "input_audio_buffer.append") say((before) => addEvent(before, event, "→"));
  };
  const hear = (event: RealtimeEvent) => {
    if (/^response\.(output_)?audio\.delta$/.test(event.type))
      speaker.current?.play(event["delta"]);
    else if (event.type === "input_audio_buffer.speech_started") speaker.current?.silence();
    say((before) => addEvent(before, event));
  };
  return {
    state,
    talk,
    problem,
    isRecording,
    end,
    mute,
    send,
    connect(of: { model: string; key: string; zdr: string }, first: RealtimeEvent, mode: string) {
      end();
      say(EMPTY);
      set("connecting");
      // A browser plays audio only after an action of the reader, such as this one.
      if (mode === "voice") speaker.current = new Speaker();
      connection.current = new RealtimeConnection(of, {
        onOpen: () => (set("open"), send(first)),
        onEvent: hear,
        onEnd: end,
      });
    },
    async speak() {
      try {
        microphone.current = await startMicrophone((audio) =>
          send({ type: "input_audio_buffer.append", audio }),
        );
        record(true);
      } catch (error) {
        report(
          new CommandError(0, {
            message: "The browser does not allow this page to use the microphone.",
            hint: `${error}`,
          }),
        );
      }
    },
  };
}

export function RealtimePage() {
  const listed = useQuery<{ models: readonly { id: string }[] }>("models.list", {
    operation: "realtime",
  });
  const ids = (listed.value?.models ?? []).map(({ id }) => id);
  const [chosen, choose] = useQueryParam("model");
  const model = chosen || (ids[0] ?? "");
  const [key, setKey] = useKey();
  const [instructions, instruct] = useState("You are brief and friendly.");
  const [mode, setMode] = useState(canRecord() ? "voice" : "text");
  const [zdr, setZdr] = useState("");
  const live = useRealtime();
  const begin = (event: SubmitEvent) => {
    event.preventDefault();
    live.connect({ model, key: key.trim(), zdr }, sessionOf(instructions, mode), mode);
  };
  const isClosed = live.state === "closed";
  return html`<div class="split">
    <div class="stack">
      <${Box} title="Connect">
        <form class="form" onSubmit=${begin}>
          <${TextField}
            name="Model"
            value=${model}
            set=${choose}
            options=${ids}
            required=${true}
            hint=${listed.value && `${ids.length} realtime ${ids.length === 1 ? "model" : "models"} to choose from`}
          />
          <${KeyField} value=${key} set=${setKey} />
          <${TextField} name="Instructions" value=${instructions} set=${instruct} rows=${3} />
          <${SegmentedControl}
            name="Response"
            value=${mode}
            set=${setMode}
            of=${[
              ["voice", "Voice"],
              ["text", "Text"],
            ]}
          />
          <${Checkbox}
            name="Zero data retention"
            value=${zdr === "required"}
            set=${(to: boolean) => setZdr(to ? "required" : "")}
          />
          ${mode === "voice" && !canRecord() && html`<p class="small quiet">This browser has no microphone for this page. Browsers allow it on pages with TLS and on the same machine. You can still type.</p>`}
          <footer>
            ${
              // With keys, these are two elements. One element would become a submit button during
              // the click that disconnects, and connect again.
              isClosed
                ? html`<button
                    key="connect"
                    type="submit"
                    class="button main"
                    disabled=${key.trim() === "" || model === ""}
                  >
                    ${icon("play")}Connect
                  </button>`
                : html`<button
                    key="disconnect"
                    type="button"
                    class="button"
                    onClick=${() => live.end()}
                  >
                    ${icon("stop")}Disconnect
                  </button>`
            }
          </footer>
        </form>
      <//>
    </div>
    <div class="stack">
      ${live.problem && html`<${ErrorNote} problem=${live.problem} />`}
      <${ConversationBox} live=${live} mode=${mode} />
      ${live.talk.log.length > 0 && html`<${Box} title="Events"><${Code} wrap=${true} label="Types of the last events" text=${live.talk.log.join("\n")} /><//>`}
    </div>
  </div>`;
}

const STATES: Readonly<Record<State, string>> = {
  closed: "not connected",
  connecting: "connecting",
  open: "connected",
};

function ConversationBox({ live, mode }: { live: ReturnType<typeof useRealtime>; mode: string }) {
  const { state, talk, isRecording } = live;
  const [text, write] = useState("");
  const ask = (event: SubmitEvent) => {
    event.preventDefault();
    const id = `item_${crypto.getRandomValues(new Uint32Array(2)).join("")}`;
    const content = [{ type: "input_text", text }];
    live.send({
      type: "conversation.item.create",
      item: { id, type: "message", role: "user", content },
    });
    live.send({ type: "response.create" });
    write("");
  };
  const mark = html`<span role="status"
    ><${Badge} tone=${state === "open" ? "good" : ""}>${STATES[state]}<//></span
  >`;
  return html`<${Box} title="Conversation" actions=${mark}>
    <div class="stack" role="log" aria-label="Conversation" aria-live="polite">
      ${talk.turns.map((turn) => html`<${TurnView} key=${turn.id} of=${turn} />`)}
      ${talk.turns.length === 0 && html`<${EmptyState} of="playground"><p>Connect, then speak or type.</p><//>`}
    </div>
    ${talk.errors.map((error, at) => html`<${NoteBox} key=${at} tone="bad"><p>${error}</p><//>`)}
    ${
      state === "open" &&
      html`<form class="form" onSubmit=${ask}>
        <${TextField} name="Message" value=${text} set=${write} rows=${2} />
        <footer>
          ${
            mode === "voice" &&
            canRecord() &&
            html`<button
              type="button"
              class="button"
              aria-pressed=${isRecording ? "true" : "false"}
              onClick=${() => (isRecording ? live.mute() : void live.speak())}
            >
              ${icon(isRecording ? "stop" : "microphone")}${isRecording ? "Stop the microphone" : "Use the microphone"}
            </button>`
          }
          <button type="submit" class="button main" disabled=${text.trim() === ""}>
            ${icon("play")}Send
          </button>
        </footer>
      </form>`
    }
    ${isAllowed("sockets.list") && html`<p class="small"><a href=${buildUrl("/sockets")}>Open connections</a></p>`}
  <//>`;
}

const TurnView = ({ of: { speaker, text, usage, status } }: { of: Turn }) =>
  html`<div>
    <p class="small quiet">${speaker}${status && status !== "completed" && ` (${status})`}</p>
    <p class="break">${text || "…"}</p>
    ${usage !== undefined && usage !== null && html`<p class="small faint">${formatUsage(usage)}</p>`}
  </div>`;

function formatUsage(usage: any): string {
  const { input_tokens: input = 0, output_tokens: output = 0 } = usage;
  return `${input} tokens in, ${output} tokens out`;
}
