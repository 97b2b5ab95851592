"""GGUF files: conversion from a checkpoint, and back."""
