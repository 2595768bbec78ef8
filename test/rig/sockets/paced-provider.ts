// A provider of Realtime for measurements: each connection gets an event of audio at a fixed pace, and a
// response ends every so many events. The events of different connections are spread evenly, also
// after a delay: in bursts, each event would wait for the others. Run as a program of its own; it
// reports its port.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";

const [everyMs = 200, eventsPerResponse = 20] = process.argv.slice(2).map(Number);
/** 100 ms of 16-bit PCM at 24 kHz. */
const AUDIO = Buffer.alloc(4_800, 7).toString("base64");
const USAGE = {
  total_tokens: 60,
  input_tokens: 20,
  output_tokens: 40,
  input_token_details: { text_tokens: 20, audio_tokens: 0, image_tokens: 0, cached_tokens: 0 },
  output_token_details: { text_tokens: 0, audio_tokens: 40 },
};

const server = createServer();
const wss = new WebSocketServer({ server, perMessageDeflate: false });
let ids = 0;
let connections = 0;
/** Spreads any number of connections evenly. */
const GOLDEN_RATIO = 0.618_033_988_75;
wss.on("connection", (ws) => {
  const send = (event: object) =>
    ws.send(JSON.stringify({ event_id: `event_${process.hrtime.bigint()}`, ...event }));
  let sent = 0;
  let id = "";
  send({ type: "session.created", session: { type: "realtime", model: "gpt-realtime" } });
  let due = performance.now() + ((++connections * GOLDEN_RATIO) % 1) * everyMs;
  const untilDue = () => Math.max(0, due - performance.now());
  const tick = () => {
    due += everyMs;
    timer = setTimeout(tick, untilDue());
    if (sent % eventsPerResponse === 0) {
      id = `resp_${++ids}`;
      send({ type: "response.created", response: { id, status: "in_progress" } });
    }
    sent++;
    send({
      type: "response.output_audio.delta",
      response_id: id,
      item_id: "item_1",
      output_index: 0,
      content_index: 0,
      delta: AUDIO,
    });
    if (sent % eventsPerResponse === 0)
      send({ type: "response.done", response: { id, status: "completed", usage: USAGE } });
  };
  let timer = setTimeout(tick, untilDue());
  ws.on("error", () => {});
  ws.on("close", () => clearTimeout(timer));
});
server.listen(0, "127.0.0.1", () =>
  process.send?.({ port: (server.address() as AddressInfo).port }),
);
process.on("disconnect", () => process.exit(0));
