"""What the programs here share: reading CoNLL columns, and how busy the rest of the machine was."""

import os
import re
import time

import numpy as np


class Corpus:
    """Sentences as ids, one after another: those of sentence i are starts[i] .. starts[i] + lengths[i]."""

    def __init__(self, path):
        self.words, self.labels = {}, {}
        words, labels, self.lengths, open_sentence = [], [], [], False
        with open(path, encoding="utf-8-sig") as file:
            for line in file:
                columns = re.split("[ \t]+", line.strip(" \t\n"))
                if columns == [""] or columns[0].startswith("-DOCSTART-"):
                    open_sentence = False
                    continue
                if not open_sentence:
                    self.lengths.append(0)
                    open_sentence = True
                self.lengths[-1] += 1
                words.append(self.words.setdefault(columns[0], len(self.words)))
                labels.append(self.labels.setdefault(columns[-1], len(self.labels)))
        self.word_ids, self.label_ids = np.array(words), np.array(labels)
        self.lengths = np.array(self.lengths)
        self.starts = np.cumsum(self.lengths) - self.lengths


class Others:
    """Cores kept busy by other programs since it was made, where the system tells (None elsewhere)."""

    def __init__(self):
        self.wall, self.busy = time.perf_counter(), busy_seconds_of_others()

    def cores(self):
        if self.busy is None:
            return None
        return round((busy_seconds_of_others() - self.busy) / (time.perf_counter() - self.wall), 2)


def busy_seconds_of_others():
    """Processor seconds of everything but this program since the system started."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    except OSError:
        return None
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK") - time.process_time()
