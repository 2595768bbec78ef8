// Frontends through which models talk: what the draft is in the words of each, and what the events of their answers say.
import { dataOf, type Draft, type Frontend, type Heard } from "./playground-frontend.ts";

const NAME = "toll_of";
const ABOUT = "What a vehicle pays at the gate, in euros";
const SCHEMA = {
  type: "object",
  properties: { vehicle: { type: "string" } },
  required: ["vehicle"],
};
const TALK = {
  kind: "chat",
  usual: "demo/echo",
  prompt: "Prompt",
  fields: ["system", "stream", "tool", "picture"],
} as const;

export const chat: Frontend = {
  ...TALK,
  said: "Chat completions",
  path: () => "/v1/chat/completions",
  body: ({ model, system, prompt, stream, tool, picture }) => ({
    model,
    messages: [
      ...(system ? [{ role: "system", content: system }] : []),
      {
        role: "user",
        content: picture
          ? [
              { type: "text", text: prompt },
              { type: "image_url", image_url: { url: picture.address } },
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
  }),
  hear(heard, event) {
    const choice = event.choices?.[0];
    const part = choice?.delta ?? choice?.message;
    if (!part) return;
    heard.text += part.content ?? "";
    heard.thought += part.reasoning_content ?? part.reasoning ?? "";
    for (const call of part.tool_calls ?? [])
      heard.calls += `${call.function?.name ?? ""}${call.function?.arguments ?? ""}`;
  },
  code: { library: "openai", method: "chat.completions.create" },
};

export const messages: Frontend = {
  ...TALK,
  said: "Messages",
  path: () => "/v1/messages",
  as: "x-api-key",
  body({ model, system, prompt, stream, tool, picture }) {
    const { type, data } = picture ? dataOf(picture) : {};
    return {
      model,
      max_tokens: 1_024,
      ...(system && { system }),
      messages: [
        {
          role: "user",
          content: picture
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
  },
  hear(heard, event) {
    const { delta, content_block: block } = event;
    if (delta?.type === "text_delta") heard.text += delta.text;
    if (delta?.type === "thinking_delta") heard.thought += delta.thinking;
    if (delta?.type === "input_json_delta") heard.calls += delta.partial_json;
    if (block?.type === "tool_use") heard.calls += `${block.name} `;
    if (event.type !== "message") return;
    for (const each of event.content ?? []) {
      heard.text += each.text ?? "";
      heard.thought += each.thinking ?? "";
      if (each.type === "tool_use") heard.calls += `${each.name} ${JSON.stringify(each.input)}`;
    }
  },
  code: { library: "anthropic", method: "messages.create" },
};

export const responses: Frontend = {
  ...TALK,
  said: "Responses",
  path: () => "/v1/responses",
  body: ({ model, system, prompt, stream, tool, picture }) => ({
    model,
    ...(system && { instructions: system }),
    input: picture
      ? [
          {
            role: "user",
            content: [
              { type: "input_text", text: prompt },
              { type: "input_image", image_url: picture.address },
            ],
          },
        ]
      : prompt,
    ...(tool && {
      tools: [{ type: "function", name: NAME, description: ABOUT, parameters: SCHEMA }],
    }),
    ...(stream && { stream }),
  }),
  hear(heard, event) {
    const { type } = event;
    if (type === "response.output_text.delta") heard.text += event.delta;
    if (
      type === "response.reasoning_summary_text.delta" ||
      type === "response.reasoning_text.delta"
    )
      heard.thought += event.delta;
    if (type === "response.function_call_arguments.done")
      heard.calls += `${event.name ?? NAME} ${event.arguments}`;
    if (event.object !== "response") return;
    for (const item of event.output ?? []) {
      for (const each of item.content ?? []) heard.text += each.text ?? "";
      for (const each of item.summary ?? []) heard.thought += each.text ?? "";
      if (item.type === "function_call") heard.calls += `${item.name} ${item.arguments}`;
    }
  },
  code: { library: "openai", method: "responses.create" },
};

const geminiWords = ({ prompt, tool, picture }: Draft) => {
  const { type, data } = picture ? dataOf(picture) : {};
  const parts = [{ text: prompt }, ...(picture ? [{ inlineData: { mimeType: type, data } }] : [])];
  return {
    contents: [{ role: "user", parts }],
    ...(tool && {
      tools: [
        {
          functionDeclarations: [{ name: NAME, description: ABOUT, parametersJsonSchema: SCHEMA }],
        },
      ],
    }),
  };
};

export const gemini: Frontend = {
  ...TALK,
  said: "Gemini",
  as: "x-goog-api-key",
  path: ({ model, stream }) =>
    `/v1beta/models/${model.split("/").map(encodeURIComponent).join("/")}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  body: (draft) => ({
    ...(draft.system && { systemInstruction: { parts: [{ text: draft.system }] } }),
    ...geminiWords(draft),
  }),
  hear(heard: Heard, event) {
    for (const part of event.candidates?.[0]?.content?.parts ?? []) {
      if (part.thought) heard.thought += part.text ?? "";
      else heard.text += part.text ?? "";
      const { functionCall: call, inlineData: file } = part;
      if (call) heard.calls += `${call.name} ${JSON.stringify(call.args)}`;
      if (file?.data) heard.pictures = [...heard.pictures, file.data];
    }
  },
  code: {
    library: "google",
    method: "models.generateContent",
    words(draft) {
      const { contents, ...rest } = geminiWords(draft);
      const config = { ...(draft.system && { systemInstruction: draft.system }), ...rest };
      return { model: draft.model, contents, config };
    },
  },
};
