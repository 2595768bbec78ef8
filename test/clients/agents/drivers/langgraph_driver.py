"""Runs one prompt through a LangGraph agent, with a tool that writes a file."""

import os
import sys
from pathlib import Path

import openai
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

STREAM = os.environ["STREAM"] == "true"


@tool
def write_file(path: str, text: str) -> str:
    """Write a text file."""
    Path(path).write_text(text, encoding="utf-8")
    return "written"


def main():
    model = ChatOpenAI(
        model=os.environ["MODEL"],
        base_url=f"{os.environ['GATEWAY_URL']}/v1",
        api_key=os.environ["GATEWAY_KEY"],
        max_retries=0,
        streaming=STREAM,
        stream_usage=True,
    ).bind_tools([write_file])
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([write_file]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    state = {"messages": [("user", os.environ["PROMPT"])]}
    if not STREAM:
        print(graph.compile().invoke(state)["messages"][-1].text)
        return
    text = ""
    for message, about in graph.compile().stream(state, stream_mode="messages"):
        if about["langgraph_node"] == "model":
            text += message.text
    print(text)


try:
    main()
except openai.APIError as error:
    sys.exit(str(error))
