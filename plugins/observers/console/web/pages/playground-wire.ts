// What the playground's draft is in each client protocol, and what the events of an answer say in it.

export const PROTOCOLS = {
  chat: { said: "Chat completions", path: "/v1/chat/completions" },
  messages: { said: "Messages", path: "/v1/messages" },
  responses: { said: "Responses", path: "/v1/responses" },
  images: { said: "Images", path: "/v1/images/generations" },
} as const;
export type ProtocolName = keyof typeof PROTOCOLS;

/** The header that carries the key; undefined: it is a bearer's. */
export const headerOf = (protocol: ProtocolName): "x-api-key" | undefined =>
  protocol === "messages" ? "x-api-key" : undefined;

export interface Draft {
  readonly model: string;
  readonly system: string;
  readonly prompt: string;
  readonly stream: boolean;
  /** Whether it may call one. */
  readonly tool: boolean;
  /** "data:image/png;base64,…" */
  readonly picture: string | undefined;
}

const NAME = "toll_of";
const ABOUT = "What a vehicle pays at the gate, in euros";
const SCHEMA = {
  type: "object",
  properties: { vehicle: { type: "string" } },
  required: ["vehicle"],
};

export function bodyOf(protocol: ProtocolName, draft: Draft): object {
  const { model, system, prompt, stream, tool, picture } = draft;
  if (protocol === "images") return { model, prompt, ...(stream && { stream }) };
  if (protocol === "chat")
    return {
      model,
      messages: [
        ...(system ? [{ role: "system", content: system }] : []),
        {
          role: "user",
          content: picture
            ? [
                { type: "text", text: prompt },
                { type: "image_url", image_url: { url: picture } },
              ]
            : prompt,
        },
      ],
      ...(tool && {
        tools: [
          { type: "function", function: { name: NAME, description: ABOUT, parameters: SCHEMA } },
        ],
      }),
      ...(stream && { stream, stream_options: { include_usage: true } }),
    };
  if (protocol === "messages") {
    const [, type, data] = /^data:([^;]+);base64,(.*)$/s.exec(picture ?? "") ?? [];
    return {
      model,
      max_tokens: 1_024,
      ...(system && { system }),
      messages: [
        {
          role: "user",
          content: data
            ? [
                { type: "image", source: { type: "base64", media_type: type, data } },
                { type: "text", text: prompt },
              ]
            : prompt,
        },
      ],
      ...(tool && { tools: [{ name: NAME, description: ABOUT, input_schema: SCHEMA }] }),
      ...(stream && { stream }),
    };
  }
  return {
    model,
    ...(system && { instructions: system }),
    input: picture
      ? [
          {
            role: "user",
            content: [
              { type: "input_text", text: prompt },
              { type: "input_image", image_url: picture },
            ],
          },
        ]
      : prompt,
    ...(tool && {
      tools: [{ type: "function", name: NAME, description: ABOUT, parameters: SCHEMA }],
    }),
    ...(stream && { stream }),
  };
}

/** What is shown of an answer, whichever protocol it came in. */
export interface Heard {
  text: string;
  thought: string;
  /** Calls of the tool, as the model wrote them. */
  calls: string;
  /** base64, or addresses. */
  pictures: string[];
  usage: unknown;
  error: string;
}

export const nothing = (): Heard => ({
  text: "",
  thought: "",
  calls: "",
  pictures: [],
  usage: undefined,
  error: "",
});

/** Adds what one event, or a whole answer, says. What it does not know it passes over: the wire beside it has all. */
export function hear(heard: Heard, event: any): void {
  if (event?.error) heard.error = event.error.message ?? JSON.stringify(event.error);
  const choice = event?.choices?.[0];
  const part = choice?.delta ?? choice?.message;
  if (part) {
    heard.text += part.content ?? "";
    heard.thought += part.reasoning_content ?? part.reasoning ?? "";
    for (const call of part.tool_calls ?? [])
      heard.calls += `${call.function?.name ?? ""}${call.function?.arguments ?? ""}`;
  }
  ofMessages(heard, event);
  ofResponses(heard, event);
  ofImages(heard, event);
  heard.usage = event?.usage ?? event?.message?.usage ?? event?.response?.usage ?? heard.usage;
}

function ofMessages(heard: Heard, event: any): void {
  const { delta, content_block: block } = event ?? {};
  if (delta?.type === "text_delta") heard.text += delta.text;
  if (delta?.type === "thinking_delta") heard.thought += delta.thinking;
  if (delta?.type === "input_json_delta") heard.calls += delta.partial_json;
  if (block?.type === "tool_use") heard.calls += `${block.name} `;
  if (event?.type !== "message") return;
  for (const each of event.content ?? []) {
    heard.text += each.text ?? "";
    heard.thought += each.thinking ?? "";
    if (each.type === "tool_use") heard.calls += `${each.name} ${JSON.stringify(each.input)}`;
  }
}

function ofResponses(heard: Heard, event: any): void {
  const type = event?.type;
  if (type === "response.output_text.delta") heard.text += event.delta;
  if (type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta")
    heard.thought += event.delta;
  if (type === "response.function_call_arguments.done")
    heard.calls += `${event.name ?? NAME} ${event.arguments}`;
  if (event?.object !== "response") return;
  for (const item of event.output ?? []) {
    for (const each of item.content ?? []) heard.text += each.text ?? "";
    for (const each of item.summary ?? []) heard.thought += each.text ?? "";
    if (item.type === "function_call") heard.calls += `${item.name} ${item.arguments}`;
  }
}

function ofImages(heard: Heard, event: any): void {
  if (/^image_generation\.(partial_image|completed)$/.test(event?.type ?? ""))
    heard.pictures = [event.b64_json];
  if (Array.isArray(event?.data))
    heard.pictures = event.data.map((each: any) => each.b64_json ?? each.url).filter(Boolean);
}
