"""Decision functions of rule sets, written by tools/matchers.py from the rules."""


def fold(make, const, bool_like, record, functions, guards):
    f0 = functions[0]
    f1 = functions[1]
    f2 = functions[2]
    f3 = functions[3]
    f4 = functions[4]
    f5 = functions[5]
    f6 = functions[6]
    f7 = functions[7]
    f8 = functions[8]
    f9 = functions[9]
    f10 = functions[10]
    f11 = functions[11]
    f12 = functions[12]
    f13 = functions[13]
    f14 = functions[14]
    f15 = functions[15]
    f16 = functions[16]
    f17 = functions[17]
    f18 = functions[18]
    f19 = functions[19]
    f20 = functions[20]
    f21 = functions[21]
    f22 = functions[22]
    f23 = functions[23]
    f24 = functions[24]
    f25 = functions[25]
    f26 = functions[26]
    f27 = functions[27]
    f28 = functions[28]
    f29 = functions[29]
    f30 = functions[30]
    f31 = functions[31]
    f32 = functions[32]
    f33 = functions[33]
    f34 = functions[34]
    f35 = functions[35]
    def match_ADD(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f0(n)
                if r is not None:
                    return r
        return None
    def match_MUL(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f1(n)
                if r is not None:
                    return r
        return None
    def match_FLOORDIV(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f2(n)
                if r is not None:
                    return r
        return None
    def match_FLOORMOD(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f3(n)
                if r is not None:
                    return r
        return None
    def match_LESS(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f4(n)
                if r is not None:
                    return r
        return None
    def match_EQUAL(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f5(n)
                if r is not None:
                    return r
        return None
    def match_AND(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f6(n)
                if r is not None:
                    return r
        return None
    def match_OR(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f7(n)
                if r is not None:
                    return r
        return None
    def match_NOT(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f8(n)
            if r is not None:
                return r
        return None
    def match_CAST(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f9(n)
            if r is not None:
                return r
        return None
    def match_MAX(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f10(n)
                if r is not None:
                    return r
        return None
    def match_MIN(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f11(n)
                if r is not None:
                    return r
        return None
    def match_NEG(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f12(n)
            if r is not None:
                return r
        return None
    def match_LESS_EQUAL(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f13(n)
                if r is not None:
                    return r
        return None
    def match_TRUNCDIV(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f14(n)
                if r is not None:
                    return r
        return None
    def match_TRUNCMOD(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f15(n)
                if r is not None:
                    return r
        return None
    def match_XOR(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f16(n)
                if r is not None:
                    return r
        return None
    def match_SHL(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f17(n)
                if r is not None:
                    return r
        return None
    def match_SHR(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f18(n)
                if r is not None:
                    return r
        return None
    def match_DIV(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f19(n)
                if r is not None:
                    return r
        return None
    def match_POW(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f20(n)
                if r is not None:
                    return r
        return None
    def match_LOGADD(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f21(n)
                if r is not None:
                    return r
        return None
    def match_SQRT(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f22(n)
            if r is not None:
                return r
        return None
    def match_EXP(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f23(n)
            if r is not None:
                return r
        return None
    def match_EXP2(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f24(n)
            if r is not None:
                return r
        return None
    def match_LOG(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f25(n)
            if r is not None:
                return r
        return None
    def match_LOG2(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f26(n)
            if r is not None:
                return r
        return None
    def match_SIN(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f27(n)
            if r is not None:
                return r
        return None
    def match_COS(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f28(n)
            if r is not None:
                return r
        return None
    def match_TANH(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f29(n)
            if r is not None:
                return r
        return None
    def match_ERF(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f30(n)
            if r is not None:
                return r
        return None
    def match_FLOOR(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f31(n)
            if r is not None:
                return r
        return None
    def match_TRUNC(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f32(n)
            if r is not None:
                return r
        return None
    def match_ROUND(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f33(n)
            if r is not None:
                return r
        return None
    def match_BITCAST(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f34(n)
            if r is not None:
                return r
        return None
    def match_DOT_BYTES(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f35(n)
                if r is not None:
                    return r
        return None
    return {3: match_ADD, 4: match_MUL, 5: match_FLOORDIV, 6: match_FLOORMOD, 7: match_LESS, 8: match_EQUAL, 9: match_AND, 10: match_OR, 11: match_NOT, 13: match_CAST, 14: match_MAX, 15: match_MIN, 16: match_NEG, 17: match_LESS_EQUAL, 18: match_TRUNCDIV, 19: match_TRUNCMOD, 20: match_XOR, 21: match_SHL, 22: match_SHR, 23: match_DIV, 24: match_POW, 25: match_LOGADD, 26: match_SQRT, 27: match_EXP, 28: match_EXP2, 29: match_LOG, 30: match_LOG2, 31: match_SIN, 32: match_COS, 33: match_TANH, 34: match_ERF, 35: match_FLOOR, 36: match_TRUNC, 37: match_ROUND, 38: match_BITCAST, 86: match_DOT_BYTES}



def kernel(make, const, bool_like, record, functions, guards):
    f117 = functions[117]
    f154 = functions[154]
    f155 = functions[155]
    def match_WHERE(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, n2, = n.src
            o = n0.op
            if o == 11:  # NOT
                n0_0, = n0.src
                return make(12, n2.dtype, (n0_0, n2, n1,))
            o = n1.op
            if o == 0:  # CONST
                o = n2.op
                if o == 0:  # CONST
                    if n1.arg is True and n2.arg is False:
                        return n0
                    if n1.arg is False and n2.arg is True:
                        return make(11, n0.dtype, (n0,))
                if n1.arg is True:
                    return make(10, n0.dtype, (n0, n2,))
                if n1.arg is False:
                    return make(9, n0.dtype, (make(11, n0.dtype, (n0,)), n2,))
            elif o == 12:  # WHERE
                n1_0, n1_1, n1_2, = n1.src
                if n1_0 is n0:
                    return make(12, n1_1.dtype, (n0, n1_1, n2,))
                if n1_2 is n2:
                    return make(12, n1_1.dtype, (make(9, n0.dtype, (n0, n1_0,)), n1_1, n2,))
            elif o == 54:  # LOAD
                o = n2.op
                if o == 0:  # CONST
                    r = f154(n0, n1, n)
                    if r is not None:
                        return r
            elif o == 57:  # READ
                o = n2.op
                if o == 0:  # CONST
                    r = f155(n0, n1, n)
                    if r is not None:
                        return r
            o = n2.op
            if o == 0:  # CONST
                if n2.arg is False:
                    return make(9, n0.dtype, (n0, n1,))
                if n2.arg is True:
                    return make(10, n0.dtype, (make(11, n0.dtype, (n0,)), n1,))
            elif o == 12:  # WHERE
                n2_0, n2_1, n2_2, = n2.src
                if n2_0 is n0:
                    return make(12, n1.dtype, (n0, n1, n2_2,))
                if n2_1 is n1:
                    return make(12, n1.dtype, (make(10, n0.dtype, (n0, n2_0,)), n1, n2_2,))
            if n2 is n1:
                return n1
            r = f117(n0, n1, n2)
            if r is not None:
                return r
        elif kind & 30:
            n0, n1, n2, = n.src
            o = n0.op
            if o == 11:  # NOT
                n0_0, = n0.src
                return make(12, n2.dtype, (n0_0, n2, n1,))
            o = n1.op
            if o == 12:  # WHERE
                n1_0, n1_1, n1_2, = n1.src
                if n1_0 is n0:
                    return make(12, n1_1.dtype, (n0, n1_1, n2,))
                if n1_2 is n2:
                    return make(12, n1_1.dtype, (make(9, n0.dtype, (n0, n1_0,)), n1_1, n2,))
            elif o == 54:  # LOAD
                o = n2.op
                if o == 0:  # CONST
                    r = f154(n0, n1, n)
                    if r is not None:
                        return r
            elif o == 57:  # READ
                o = n2.op
                if o == 0:  # CONST
                    r = f155(n0, n1, n)
                    if r is not None:
                        return r
            o = n2.op
            if o == 12:  # WHERE
                n2_0, n2_1, n2_2, = n2.src
                if n2_0 is n0:
                    return make(12, n1.dtype, (n0, n1, n2_2,))
                if n2_1 is n1:
                    return make(12, n1.dtype, (make(10, n0.dtype, (n0, n2_0,)), n1, n2_2,))
            if n2 is n1:
                return n1
            r = f117(n0, n1, n2)
            if r is not None:
                return r
        return None
    return {12: match_WHERE}



def normalize(make, const, bool_like, record, functions, guards):
    f36 = functions[36]
    f37 = functions[37]
    f38 = functions[38]
    def match_DETACH(n, context):
        r = f37(n)
        if r is not None:
            return r
        return None
    def match_ITEM(n, context):
        n0, = n.src
        o = n0.op
        if o == 73:  # TUPLE
            r = f38(n0, n)
            if r is not None:
                return r
        return None
    def match_CUSTOM_GRADIENT(n, context):
        r = f36(n)
        if r is not None:
            return r
        return None
    return {48: match_DETACH, 74: match_ITEM, 80: match_CUSTOM_GRADIENT}



def simplify(make, const, bool_like, record, functions, guards):
    f0 = functions[0]
    f1 = functions[1]
    f2 = functions[2]
    f3 = functions[3]
    f4 = functions[4]
    f5 = functions[5]
    f6 = functions[6]
    f7 = functions[7]
    f8 = functions[8]
    f9 = functions[9]
    f10 = functions[10]
    f11 = functions[11]
    f12 = functions[12]
    f13 = functions[13]
    f14 = functions[14]
    f15 = functions[15]
    f16 = functions[16]
    f17 = functions[17]
    f18 = functions[18]
    f19 = functions[19]
    f20 = functions[20]
    f21 = functions[21]
    f22 = functions[22]
    f23 = functions[23]
    f24 = functions[24]
    f25 = functions[25]
    f26 = functions[26]
    f27 = functions[27]
    f28 = functions[28]
    f29 = functions[29]
    f30 = functions[30]
    f31 = functions[31]
    f32 = functions[32]
    f33 = functions[33]
    f34 = functions[34]
    f35 = functions[35]
    f36 = functions[36]
    f37 = functions[37]
    f38 = functions[38]
    w59 = guards[59]
    w60 = guards[60]
    w61 = guards[61]
    w62 = guards[62]
    f63 = functions[63]
    f64 = functions[64]
    w65 = guards[65]
    w69 = guards[69]
    w73 = guards[73]
    w74 = guards[74]
    f75 = functions[75]
    f76 = functions[76]
    w77 = guards[77]
    f82 = functions[82]
    f83 = functions[83]
    w84 = guards[84]
    f85 = functions[85]
    f86 = functions[86]
    f87 = functions[87]
    f88 = functions[88]
    w92 = guards[92]
    f94 = functions[94]
    f95 = functions[95]
    w102 = guards[102]
    w103 = guards[103]
    w113 = guards[113]
    w114 = guards[114]
    f117 = functions[117]
    w128 = guards[128]
    w129 = guards[129]
    w130 = guards[130]
    w131 = guards[131]
    f140 = functions[140]
    f141 = functions[141]
    f142 = functions[142]
    f143 = functions[143]
    f144 = functions[144]
    f145 = functions[145]
    f146 = functions[146]
    f147 = functions[147]
    f148 = functions[148]
    f149 = functions[149]
    f150 = functions[150]
    f151 = functions[151]
    f152 = functions[152]
    f153 = functions[153]
    def match_RANGE(n, context):
        r = f36(n)
        if r is not None:
            return r
        return None
    def match_VARIABLE(n, context):
        r = f37(n)
        if r is not None:
            return r
        return None
    def match_ADD(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f0(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg is False:
                    return n0
                if n1.arg is True:
                    return const(n.dtype, True)
            r = f145(n, n0, n1)
            if r is not None:
                return r
        elif kind & 14:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f0(n)
                    if r is not None:
                        return r
            r = f38(n, n0, n1)
            if r is not None:
                return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f0(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if repr(n1.arg) == '-0.0':
                    return n0
            r = f145(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_MUL(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f1(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg is True:
                    return n0
                if n1.arg is False:
                    return const(n.dtype, False)
            r = f146(n, n0, n1)
            if r is not None:
                return r
        elif kind & 14:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f1(n)
                    if r is not None:
                        return r
            elif o == 3:  # ADD
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    return make(3, n0_0.dtype, (make(4, n0_0.dtype, (n0_0, n1,)), make(4, n0_1.dtype, (n0_1, n1,)),))
            elif o == 4:  # MUL
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        return make(4, n0_0.dtype, (n0_0, const(n0_0.dtype, (n0_1.arg * n1.arg)),))
                o = n0_1.op
                if o == 0:  # CONST
                    return make(4, n0_0.dtype, (make(4, n0_0.dtype, (n0_0, n1,)), n0_1,))
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return const(n.dtype, 0)
                if n1.arg == 1:
                    return n0
            elif o == 4:  # MUL
                n1_0, n1_1, = n1.src
                o = n1_1.op
                if o == 0:  # CONST
                    return make(4, n1_0.dtype, (make(4, n1_0.dtype, (n1_0, n0,)), n1_1,))
            r = f146(n, n0, n1)
            if r is not None:
                return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f1(n)
                    if r is not None:
                        return r
            elif o == 16:  # NEG
                n0_0, = n0.src
                o = n1.op
                if o == 16:  # NEG
                    n1_0, = n1.src
                    return make(4, n0_0.dtype, (n0_0, n1_0,))
                    return make(4, n1_0.dtype, (n1_0, n0_0,))
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 1.0:
                    return n0
                if n1.arg == -1.0:
                    return make(16, n0.dtype, (n0,))
            r = f146(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_FLOORDIV(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind & 17:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f2(n)
                    if r is not None:
                        return r
        elif kind & 6:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f2(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return const(n.dtype, 0)
                if n1.arg == 1:
                    return n0
            if n1 is n0 and w59(n0):
                return const(n.dtype, 1)
        elif kind == 8:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f2(n)
                    if r is not None:
                        return r
            elif o == 5:  # FLOORDIV
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        if w60(n0_1.arg, n1.arg):
                            return make(5, n0_0.dtype, (n0_0, const(n0_0.dtype, (n0_1.arg * n1.arg)),))
            elif o == 6:  # FLOORMOD
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        if w61(n0_1.arg, n1.arg):
                            return make(6, n0_0.dtype, (make(5, n0_0.dtype, (n0_0, n1,)), const(n0_0.dtype, (n0_1.arg // n1.arg)),))
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return const(n.dtype, 0)
                if n1.arg == 1:
                    return n0
                if w62(n1.arg):
                    return make(5, n0.dtype, (make(4, n0.dtype, (n0, const(n0.dtype, -1),)), const(n0.dtype, (-n1.arg)),))
                r = f63(n, n0, n1.arg)
                if r is not None:
                    return r
            if n1 is n0 and w59(n0):
                return const(n.dtype, 1)
            r = f64(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_FLOORMOD(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind & 17:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f3(n)
                    if r is not None:
                        return r
        elif kind & 6:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f3(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return const(n.dtype, 0)
                if n1.arg == 1:
                    return const(n.dtype, 0)
            if n1 is n0:
                return const(n.dtype, 0)
        elif kind == 8:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f3(n)
                    if r is not None:
                        return r
            elif o == 6:  # FLOORMOD
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        if w73(n0_1.arg, n1.arg):
                            return make(6, n0_0.dtype, (n0_0, n1,))
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return const(n.dtype, 0)
                if n1.arg == 1:
                    return const(n.dtype, 0)
                if w74(n1.arg):
                    return make(4, n0.dtype, (make(6, n0.dtype, (make(4, n0.dtype, (n0, const(n0.dtype, -1),)), const(n0.dtype, (-n1.arg)),)), const(n0.dtype, -1),))
                r = f75(n, n0, n1.arg)
                if r is not None:
                    return r
            if n1 is n0:
                return const(n.dtype, 0)
            r = f76(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_LESS(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f4(n)
                    if r is not None:
                        return r
            if n1 is n0:
                return const(n.dtype, False)
            r = f82(n, n0, n1)
            if r is not None:
                return r
            return make(9, n0.dtype, (make(11, n0.dtype, (n0,)), n1,))
        elif kind & 6:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f4(n)
                    if r is not None:
                        return r
            elif o == 3:  # ADD
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        if w92(n, n0_0, n0_1.arg, n1.arg):
                            return make(7, bool_like(n0_0), (n0_0, const(n0_0.dtype, (n1.arg + (-n0_1.arg))),))
            if n1 is n0:
                return const(n.dtype, False)
            r = f82(n, n0, n1)
            if r is not None:
                return r
        elif kind == 8:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f4(n)
                    if r is not None:
                        return r
            elif o == 5:  # FLOORDIV
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        if w84(n0_1.arg):
                            return make(7, bool_like(n0_0), (n0_0, const(n0_0.dtype, (n1.arg * n0_1.arg)),))
            elif o == 6:  # FLOORMOD
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        r = f83(n, n0_0, n0_1.arg, n1.arg)
                        if r is not None:
                            return r
            elif o == 13:  # CAST
                n0_0, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    r = f143(n, n0_0, n1.arg)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                r = f86(n, n0, n1.arg)
                if r is not None:
                    return r
            if n1 is n0:
                return const(n.dtype, False)
            r = f82(n, n0, n1)
            if r is not None:
                return r
            r = f85(n, n0, n1)
            if r is not None:
                return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f4(n)
                    if r is not None:
                        return r
            if n1 is n0:
                return const(n.dtype, False)
        return None
    def match_EQUAL(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f5(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg is True:
                    return n0
                if n1.arg is False:
                    return make(11, n0.dtype, (n0,))
            if n1 is n0:
                return const(n.dtype, True)
            r = f87(n, n0, n1)
            if r is not None:
                return r
            r = f147(n, n0, n1)
            if r is not None:
                return r
        elif kind & 6:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f5(n)
                    if r is not None:
                        return r
            if n1 is n0:
                return const(n.dtype, True)
            r = f87(n, n0, n1)
            if r is not None:
                return r
            r = f147(n, n0, n1)
            if r is not None:
                return r
        elif kind == 8:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f5(n)
                    if r is not None:
                        return r
            if n1 is n0:
                return const(n.dtype, True)
            r = f87(n, n0, n1)
            if r is not None:
                return r
            r = f88(n, n0, n1)
            if r is not None:
                return r
            r = f147(n, n0, n1)
            if r is not None:
                return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f5(n)
                    if r is not None:
                        return r
            r = f147(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_AND(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f6(n)
                    if r is not None:
                        return r
            elif o == 10:  # OR
                n0_0, n0_1, = n0.src
                if n0_0 is n1:
                    return n1
                if n0_1 is n1:
                    return n1
            o = n1.op
            if o == 10:  # OR
                n1_0, n1_1, = n1.src
                if n1_0 is n0:
                    return n0
                if n1_1 is n0:
                    return n0
            r = f94(n, n0, n1)
            if r is not None:
                return r
            if n1 is n0:
                return n0
        elif kind & 6:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f6(n)
                    if r is not None:
                        return r
            elif o == 9:  # AND
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        return make(9, n0_0.dtype, (n0_0, const(n0_0.dtype, (n0_1.arg & n1.arg)),))
            elif o == 10:  # OR
                n0_0, n0_1, = n0.src
                if n0_0 is n1:
                    return n1
                if n0_1 is n1:
                    return n1
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return const(n.dtype, 0)
                if w102(n, n1.arg):
                    return n0
            elif o == 10:  # OR
                n1_0, n1_1, = n1.src
                if n1_0 is n0:
                    return n0
                if n1_1 is n0:
                    return n0
            if n1 is n0:
                return n0
            r = f148(n, n0, n1)
            if r is not None:
                return r
        elif kind == 8:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f6(n)
                    if r is not None:
                        return r
            elif o == 9:  # AND
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        return make(9, n0_0.dtype, (n0_0, const(n0_0.dtype, (n0_1.arg & n1.arg)),))
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return const(n.dtype, 0)
            if n1 is n0:
                return n0
            r = f148(n, n0, n1)
            if r is not None:
                return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f6(n)
                    if r is not None:
                        return r
            r = f148(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_OR(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f7(n)
                    if r is not None:
                        return r
            elif o == 9:  # AND
                n0_0, n0_1, = n0.src
                if n0_0 is n1:
                    return n1
                if n0_1 is n1:
                    return n1
            o = n1.op
            if o == 9:  # AND
                n1_0, n1_1, = n1.src
                if n1_0 is n0:
                    return n0
                if n1_1 is n0:
                    return n0
            r = f95(n, n0, n1)
            if r is not None:
                return r
            if n1 is n0:
                return n0
        elif kind & 6:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f7(n)
                    if r is not None:
                        return r
            elif o == 9:  # AND
                n0_0, n0_1, = n0.src
                if n0_0 is n1:
                    return n1
                if n0_1 is n1:
                    return n1
            elif o == 10:  # OR
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        return make(10, n0_0.dtype, (n0_0, const(n0_0.dtype, (n0_1.arg | n1.arg)),))
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return n0
                if w103(n, n1.arg):
                    return n1
            elif o == 9:  # AND
                n1_0, n1_1, = n1.src
                if n1_0 is n0:
                    return n0
                if n1_1 is n0:
                    return n0
            if n1 is n0:
                return n0
            r = f149(n, n0, n1)
            if r is not None:
                return r
        elif kind == 8:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f7(n)
                    if r is not None:
                        return r
            elif o == 10:  # OR
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        return make(10, n0_0.dtype, (n0_0, const(n0_0.dtype, (n0_1.arg | n1.arg)),))
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return n0
            if n1 is n0:
                return n0
            r = f149(n, n0, n1)
            if r is not None:
                return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f7(n)
                    if r is not None:
                        return r
            r = f149(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_NOT(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f8(n)
            if r is not None:
                return r
        elif o == 11:  # NOT
            n0_0, = n0.src
            return n0_0
        return None
    def match_WHERE(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, n2, = n.src
            o = n0.op
            if o == 11:  # NOT
                n0_0, = n0.src
                return make(12, n2.dtype, (n0_0, n2, n1,))
            o = n1.op
            if o == 0:  # CONST
                o = n2.op
                if o == 0:  # CONST
                    if n1.arg is True and n2.arg is False:
                        return n0
                    if n1.arg is False and n2.arg is True:
                        return make(11, n0.dtype, (n0,))
                if n1.arg is True:
                    return make(10, n0.dtype, (n0, n2,))
                if n1.arg is False:
                    return make(9, n0.dtype, (make(11, n0.dtype, (n0,)), n2,))
            elif o == 12:  # WHERE
                n1_0, n1_1, n1_2, = n1.src
                if n1_0 is n0:
                    return make(12, n1_1.dtype, (n0, n1_1, n2,))
                if n1_2 is n2:
                    return make(12, n1_1.dtype, (make(9, n0.dtype, (n0, n1_0,)), n1_1, n2,))
            o = n2.op
            if o == 0:  # CONST
                if n2.arg is False:
                    return make(9, n0.dtype, (n0, n1,))
                if n2.arg is True:
                    return make(10, n0.dtype, (make(11, n0.dtype, (n0,)), n1,))
            elif o == 12:  # WHERE
                n2_0, n2_1, n2_2, = n2.src
                if n2_0 is n0:
                    return make(12, n1.dtype, (n0, n1, n2_2,))
                if n2_1 is n1:
                    return make(12, n1.dtype, (make(10, n0.dtype, (n0, n2_0,)), n1, n2_2,))
            if n2 is n1:
                return n1
            r = f117(n0, n1, n2)
            if r is not None:
                return r
        elif kind & 30:
            n0, n1, n2, = n.src
            o = n0.op
            if o == 11:  # NOT
                n0_0, = n0.src
                return make(12, n2.dtype, (n0_0, n2, n1,))
            o = n1.op
            if o == 12:  # WHERE
                n1_0, n1_1, n1_2, = n1.src
                if n1_0 is n0:
                    return make(12, n1_1.dtype, (n0, n1_1, n2,))
                if n1_2 is n2:
                    return make(12, n1_1.dtype, (make(9, n0.dtype, (n0, n1_0,)), n1_1, n2,))
            o = n2.op
            if o == 12:  # WHERE
                n2_0, n2_1, n2_2, = n2.src
                if n2_0 is n0:
                    return make(12, n1.dtype, (n0, n1, n2_2,))
                if n2_1 is n1:
                    return make(12, n1.dtype, (make(10, n0.dtype, (n0, n2_0,)), n1, n2_2,))
            if n2 is n1:
                return n1
            r = f117(n0, n1, n2)
            if r is not None:
                return r
        return None
    def match_CAST(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind & 17:
            n0, = n.src
            o = n0.op
            if o == 0:  # CONST
                r = f9(n)
                if r is not None:
                    return r
            elif o == 13:  # CAST
                n0_0, = n0.src
                r = f140(n, n0_0)
                if r is not None:
                    return r
            r = f141(n, n0)
            if r is not None:
                return r
        elif kind & 14:
            n0, = n.src
            o = n0.op
            if o == 0:  # CONST
                r = f9(n)
                if r is not None:
                    return r
            elif o == 13:  # CAST
                n0_0, = n0.src
                r = f140(n, n0_0)
                if r is not None:
                    return r
            r = f141(n, n0)
            if r is not None:
                return r
            r = f142(n, n0)
            if r is not None:
                return r
        return None
    def match_MAX(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f10(n)
                    if r is not None:
                        return r
            if w128(n0, n1):
                return n0
            if w129(n0, n1):
                return n1
            if n1 is n0:
                return n0
            return make(10, n0.dtype, (n0, n1,))
            r = f150(n, n0, n1)
            if r is not None:
                return r
        elif kind & 14:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f10(n)
                    if r is not None:
                        return r
            elif o == 14:  # MAX
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        return make(14, n0_0.dtype, (n0_0, const(n0_0.dtype, max(n0_1.arg, n1.arg)),))
            if w128(n0, n1):
                return n0
            if w129(n0, n1):
                return n1
            if n1 is n0:
                return n0
            r = f150(n, n0, n1)
            if r is not None:
                return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f10(n)
                    if r is not None:
                        return r
            if n1 is n0:
                return n0
            r = f150(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_MIN(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f11(n)
                    if r is not None:
                        return r
            if w130(n0, n1):
                return n0
            if w131(n0, n1):
                return n1
            if n1 is n0:
                return n0
            return make(9, n0.dtype, (n0, n1,))
            r = f151(n, n0, n1)
            if r is not None:
                return r
        elif kind & 14:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f11(n)
                    if r is not None:
                        return r
            elif o == 15:  # MIN
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        return make(15, n0_0.dtype, (n0_0, const(n0_0.dtype, min(n0_1.arg, n1.arg)),))
            if w130(n0, n1):
                return n0
            if w131(n0, n1):
                return n1
            if n1 is n0:
                return n0
            r = f151(n, n0, n1)
            if r is not None:
                return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f11(n)
                    if r is not None:
                        return r
            if n1 is n0:
                return n0
            r = f151(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_NEG(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, = n.src
            o = n0.op
            if o == 0:  # CONST
                r = f12(n)
                if r is not None:
                    return r
        elif kind & 14:
            n0, = n.src
            o = n0.op
            if o == 0:  # CONST
                r = f12(n)
                if r is not None:
                    return r
            return make(4, n0.dtype, (n0, const(n0.dtype, -1),))
        elif kind == 16:
            n0, = n.src
            o = n0.op
            if o == 0:  # CONST
                r = f12(n)
                if r is not None:
                    return r
            elif o == 16:  # NEG
                n0_0, = n0.src
                return n0_0
        return None
    def match_LESS_EQUAL(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind & 15:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f13(n)
                    if r is not None:
                        return r
            if n1 is n0:
                return const(n.dtype, True)
            return make(11, bool_like(n1), (make(7, bool_like(n1), (n1, n0,)),))
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f13(n)
                    if r is not None:
                        return r
        return None
    def match_TRUNCDIV(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind & 17:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f14(n)
                    if r is not None:
                        return r
        elif kind & 14:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f14(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 1:
                    return n0
            if w65(n0, n1):
                return make(5, n0.dtype, (n0, n1,))
        return None
    def match_TRUNCMOD(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind & 17:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f15(n)
                    if r is not None:
                        return r
        elif kind & 14:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f15(n)
                    if r is not None:
                        return r
            if w77(n0, n1):
                return make(6, n0.dtype, (n0, n1,))
        return None
    def match_XOR(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f16(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg is False:
                    return n0
                if n1.arg is True:
                    return make(11, n0.dtype, (n0,))
            if n1 is n0:
                return const(n.dtype, 0)
            r = f152(n, n0, n1)
            if r is not None:
                return r
        elif kind & 14:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f16(n)
                    if r is not None:
                        return r
            elif o == 20:  # XOR
                n0_0, n0_1, = n0.src
                o = n1.op
                if o == 0:  # CONST
                    o = n0_1.op
                    if o == 0:  # CONST
                        return make(20, n0_0.dtype, (n0_0, const(n0_0.dtype, (n0_1.arg ^ n1.arg)),))
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return n0
            if n1 is n0:
                return const(n.dtype, 0)
            r = f152(n, n0, n1)
            if r is not None:
                return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f16(n)
                    if r is not None:
                        return r
            r = f152(n, n0, n1)
            if r is not None:
                return r
        return None
    def match_SHL(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind & 17:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f17(n)
                    if r is not None:
                        return r
        elif kind & 6:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f17(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return n0
        elif kind == 8:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f17(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return n0
                if w113(n1.arg):
                    return make(4, n0.dtype, (n0, const(n0.dtype, (1 << n1.arg)),))
        return None
    def match_SHR(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind & 17:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f18(n)
                    if r is not None:
                        return r
        elif kind & 6:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f18(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return n0
        elif kind == 8:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f18(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 0:
                    return n0
                if w114(n1.arg):
                    return make(5, n0.dtype, (n0, const(n0.dtype, (1 << n1.arg)),))
        return None
    def match_DIV(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind & 15:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f19(n)
                    if r is not None:
                        return r
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f19(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 1.0:
                    return n0
                if n1.arg == -1.0:
                    return make(16, n0.dtype, (n0,))
                if w69(n, n1.arg):
                    return make(4, n0.dtype, (n0, const(n0.dtype, (1.0 / n1.arg)),))
        return None
    def match_POW(n, context):
        kind = (n.src[-1] if n.src else n).dtype.kind
        if kind == 1:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f20(n)
                    if r is not None:
                        return r
        elif kind & 14:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f20(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if n1.arg == 1:
                    return n0
                if n1.arg == 2:
                    return make(4, n0.dtype, (n0, n0,))
        elif kind == 16:
            n0, n1, = n.src
            o = n0.op
            if o == 0:  # CONST
                o = n1.op
                if o == 0:  # CONST
                    r = f20(n)
                    if r is not None:
                        return r
            o = n1.op
            if o == 0:  # CONST
                if repr(n1.arg) == '0.0':
                    return const(n.dtype, 1.0)
                if n1.arg == 1.0:
                    return n0
                if n1.arg == 2.0:
                    return make(4, n0.dtype, (n0, n0,))
        return None
    def match_LOGADD(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f21(n)
                if r is not None:
                    return r
        r = f153(n, n0, n1)
        if r is not None:
            return r
        return None
    def match_SQRT(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f22(n)
            if r is not None:
                return r
        return None
    def match_EXP(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f23(n)
            if r is not None:
                return r
        return None
    def match_EXP2(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f24(n)
            if r is not None:
                return r
        return None
    def match_LOG(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f25(n)
            if r is not None:
                return r
        return None
    def match_LOG2(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f26(n)
            if r is not None:
                return r
        return None
    def match_SIN(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f27(n)
            if r is not None:
                return r
        return None
    def match_COS(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f28(n)
            if r is not None:
                return r
        return None
    def match_TANH(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f29(n)
            if r is not None:
                return r
        return None
    def match_ERF(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f30(n)
            if r is not None:
                return r
        return None
    def match_FLOOR(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f31(n)
            if r is not None:
                return r
        return None
    def match_TRUNC(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f32(n)
            if r is not None:
                return r
        return None
    def match_ROUND(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f33(n)
            if r is not None:
                return r
        return None
    def match_BITCAST(n, context):
        n0, = n.src
        o = n0.op
        if o == 0:  # CONST
            r = f34(n)
            if r is not None:
                return r
        r = f144(n, n0)
        if r is not None:
            return r
        return None
    def match_DOT_BYTES(n, context):
        n0, n1, = n.src
        o = n0.op
        if o == 0:  # CONST
            o = n1.op
            if o == 0:  # CONST
                r = f35(n)
                if r is not None:
                    return r
        return None
    return {1: match_RANGE, 2: match_VARIABLE, 3: match_ADD, 4: match_MUL, 5: match_FLOORDIV, 6: match_FLOORMOD, 7: match_LESS, 8: match_EQUAL, 9: match_AND, 10: match_OR, 11: match_NOT, 12: match_WHERE, 13: match_CAST, 14: match_MAX, 15: match_MIN, 16: match_NEG, 17: match_LESS_EQUAL, 18: match_TRUNCDIV, 19: match_TRUNCMOD, 20: match_XOR, 21: match_SHL, 22: match_SHR, 23: match_DIV, 24: match_POW, 25: match_LOGADD, 26: match_SQRT, 27: match_EXP, 28: match_EXP2, 29: match_LOG, 30: match_LOG2, 31: match_SIN, 32: match_COS, 33: match_TANH, 34: match_ERF, 35: match_FLOOR, 36: match_TRUNC, 37: match_ROUND, 38: match_BITCAST, 86: match_DOT_BYTES}



KEYS = {'fold': 550342711, 'kernel': 3590978374, 'normalize': 2931078922, 'simplify': 1496945427}
TABLES = {'fold': fold, 'kernel': kernel, 'normalize': normalize, 'simplify': simplify}
