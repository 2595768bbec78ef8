// The command that sends a test alert to each receiver and reports the receiver's response.
import type { Context, Json, PluginCommand } from "tollgate/plugin";
import type { Alert } from "./alert.ts";
import { sendAlert, type Receiver } from "./delivery.ts";

export const createTestCommand = (
  receivers: readonly Receiver[],
  gateway: string,
  fetch: Context["fetch"],
): PluginCommand => ({
  summary: "Send a test alert and show how each receiver responds",
  input: {
    type: "object",
    additionalProperties: false,
    properties: {
      receiver: { type: "string", description: "Receiver name (default: all receivers)" },
    },
  },
  role: "operator",
  writes: true,
  async run({ receiver: only }) {
    const asked = receivers.filter(({ name }) => only === undefined || name === only);
    return Promise.all(
      asked.map(async (receiver): Promise<Json> => {
        const began = performance.now();
        const reason = await sendAlert(receiver, createTestAlert(gateway), fetch, Date.now());
        const ms = Math.round(performance.now() - began);
        return { receiver: receiver.name, ok: reason === undefined, ...(reason && { reason }), ms };
      }),
    );
  },
});

const createTestAlert = (gateway: string): Alert => ({
  id: `msg_${crypto.randomUUID()}`,
  type: "alerts.test",
  at: new Date().toISOString(),
  gateway,
  subject: "gateway",
  data: {},
});
