// Frontends for chat models: how each encodes a draft, and how its events are read.
import {
  toInlineData,
  type Draft,
  type PlaygroundFrontend,
  type ResponseParts,
} from "./playground-frontend.ts";

const TOOL_NAME = "toll_of";
const TOOL_DESCRIPTION = "Toll for a type of vehicle, in euros";
const TOOL_SCHEMA = {
  type: "object",
  properties: { vehicle: { type: "string" } },
  required: ["vehicle"],
};
const CHAT_DEFAULTS = {
  operation: "chat",
  defaultModel: "demo/echo",
  promptLabel: "Prompt",
  fields: ["system", "stream", "tool", "image"],
} as const;

export const chat: PlaygroundFrontend = {
  ...CHAT_DEFAULTS,
  title: "Chat completions",
  path: () => "/v1/chat/completions",
  buildBody: ({ model, system, prompt, stream, tool, image }) => ({
    model,
    messages: [
      ...(system ? [{ role: "system", content: system }] : []),
      {
        role: "user",
        content: image
          ? [
              { type: "text", text: prompt },
              { type: "image_url", image_url: { url: image.dataUrl } },
            ]
          : prompt,
      },
    ],
    ...(tool && {
      tools: [
        {
          type: "function",
          function: { name: TOOL_NAME, description: TOOL_DESCRIPTION, parameters: TOOL_SCHEMA },
        },
      ],
    }),
    ...(stream && { stream, stream_options: { include_usage: true } }),
  }),
  addEvent(parts, event) {
    const choice = event.choices?.[0];
    const part = choice?.delta ?? choice?.message;
    if (!part) return;
    parts.text += part.content ?? "";
    parts.reasoning += part.reasoning_content ?? part.reasoning ?? "";
    for (const call of part.tool_calls ?? [])
      parts.toolCalls += `${call.function?.name ?? ""}${call.function?.arguments ?? ""}`;
  },
  snippet: { library: "openai", method: "chat.completions.create" },
};

export const messages: PlaygroundFrontend = {
  ...CHAT_DEFAULTS,
  title: "Messages",
  path: () => "/v1/messages",
  keyHeader: "x-api-key",
  buildBody({ model, system, prompt, stream, tool, image }) {
    const { type, data } = image ? toInlineData(image) : {};
    return {
      model,
      max_tokens: 1_024,
      ...(system && { system }),
      messages: [
        {
          role: "user",
          content: image
            ? [
                { type: "image", source: { type: "base64", media_type: type, data } },
                { type: "text", text: prompt },
              ]
            : prompt,
        },
      ],
      ...(tool && {
        tools: [{ name: TOOL_NAME, description: TOOL_DESCRIPTION, input_schema: TOOL_SCHEMA }],
      }),
      ...(stream && { stream }),
    };
  },
  addEvent(parts, event) {
    const { delta, content_block: block } = event;
    if (delta?.type === "text_delta") parts.text += delta.text;
    if (delta?.type === "thinking_delta") parts.reasoning += delta.thinking;
    if (delta?.type === "input_json_delta") parts.toolCalls += delta.partial_json;
    if (block?.type === "tool_use") parts.toolCalls += `${block.name} `;
    if (event.type !== "message") return;
    for (const each of event.content ?? []) {
      parts.text += each.text ?? "";
      parts.reasoning += each.thinking ?? "";
      if (each.type === "tool_use") parts.toolCalls += `${each.name} ${JSON.stringify(each.input)}`;
    }
  },
  snippet: { library: "anthropic", method: "messages.create" },
};

export const responses: PlaygroundFrontend = {
  ...CHAT_DEFAULTS,
  title: "Responses",
  path: () => "/v1/responses",
  buildBody: ({ model, system, prompt, stream, tool, image }) => ({
    model,
    ...(system && { instructions: system }),
    input: image
      ? [
          {
            role: "user",
            content: [
              { type: "input_text", text: prompt },
              { type: "input_image", image_url: image.dataUrl },
            ],
          },
        ]
      : prompt,
    ...(tool && {
      tools: [
        {
          type: "function",
          name: TOOL_NAME,
          description: TOOL_DESCRIPTION,
          parameters: TOOL_SCHEMA,
        },
      ],
    }),
    ...(stream && { stream }),
  }),
  addEvent(parts, event) {
    const { type } = event;
    if (type === "response.output_text.delta") parts.text += event.delta;
    if (
      type === "response.reasoning_summary_text.delta" ||
      type === "response.reasoning_text.delta"
    )
      parts.reasoning += event.delta;
    if (type === "response.function_call_arguments.done")
      parts.toolCalls += `${event.name ?? TOOL_NAME} ${event.arguments}`;
    if (event.object !== "response") return;
    for (const item of event.output ?? []) {
      for (const each of item.content ?? []) parts.text += each.text ?? "";
      for (const each of item.summary ?? []) parts.reasoning += each.text ?? "";
      if (item.type === "function_call") parts.toolCalls += `${item.name} ${item.arguments}`;
    }
  },
  snippet: { library: "openai", method: "responses.create" },
};

const geminiContents = ({ prompt, tool, image }: Draft) => {
  const { type, data } = image ? toInlineData(image) : {};
  const parts = [{ text: prompt }, ...(image ? [{ inlineData: { mimeType: type, data } }] : [])];
  return {
    contents: [{ role: "user", parts }],
    ...(tool && {
      tools: [
        {
          functionDeclarations: [
            { name: TOOL_NAME, description: TOOL_DESCRIPTION, parametersJsonSchema: TOOL_SCHEMA },
          ],
        },
      ],
    }),
  };
};

export const gemini: PlaygroundFrontend = {
  ...CHAT_DEFAULTS,
  title: "Gemini",
  keyHeader: "x-goog-api-key",
  path: ({ model, stream }) =>
    `/v1beta/models/${model.split("/").map(encodeURIComponent).join("/")}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  buildBody: (draft) => ({
    ...(draft.system && { systemInstruction: { parts: [{ text: draft.system }] } }),
    ...geminiContents(draft),
  }),
  addEvent(parts: ResponseParts, event) {
    for (const part of event.candidates?.[0]?.content?.parts ?? []) {
      if (part.thought) parts.reasoning += part.text ?? "";
      else parts.text += part.text ?? "";
      const { functionCall: call, inlineData: file } = part;
      if (call) parts.toolCalls += `${call.name} ${JSON.stringify(call.args)}`;
      if (file?.data) parts.images = [...parts.images, file.data];
    }
  },
  snippet: {
    library: "google",
    method: "models.generateContent",
    arguments(draft) {
      const { contents, ...rest } = geminiContents(draft);
      const config = { ...(draft.system && { systemInstruction: draft.system }), ...rest };
      return { model: draft.model, contents, config };
    },
  },
};
